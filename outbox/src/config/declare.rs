//! `sections!`: sections of a configuration, with each setting listed once.

/// Declares the structs of sections. A field is a key in kebab case. Its default follows the type.
/// `serde` refuses unknown keys.
macro_rules! sections {
    ($(
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_about:meta])* $field_visibility:vis $field:ident: $ty:ty = $default:expr,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        #[non_exhaustive]
        $visibility struct $name {
            $($(#[$field_about])* $field_visibility $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    )*};
}
pub(super) use sections;
