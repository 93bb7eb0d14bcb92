//! Tables and publishing on real databases: the same cases on SQLite, PostgreSQL and MySQL/MariaDB.

mod migrating;
mod publishing;
mod raw;
