//! A recorder of the test's own, its `/metrics`, and what is read there.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use metrics::{LocalRecorderGuard, set_default_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use outbox::metrics::{Metric, SECONDS_BUCKETS, SIZE_BUCKETS};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Everything that this thread counts, which is everything in a test on one thread, for as long as
/// this lives.
pub(crate) struct Scraped {
    address: SocketAddr,
    _recorder: LocalRecorderGuard<'static>,
}

impl Scraped {
    pub(crate) async fn start() -> Self {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
            .and_then(|builder| {
                let sizes = Matcher::Suffix("_size".to_owned());
                builder.set_buckets_for_metric(sizes, &SIZE_BUCKETS)
            });
        let recorder = builder.expect("buckets").build_recorder();
        let handle = recorder.handle();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve(listener, handle));
        // Each test is a process, or a thread that ends soon after.
        let recorder = Box::leak(Box::new(recorder));
        Self {
            address,
            _recorder: set_default_local_recorder(recorder),
        }
    }

    /// Asks for `/metrics`.
    pub(crate) async fn scrape(&self) -> Page {
        let mut stream = TcpStream::connect(self.address).await.expect("a server");
        let request = b"GET /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Page::of(body)
    }

    /// Scrapes until the page is as it should be; panics with the last one after a minute.
    pub(crate) async fn until(&self, what: &str, so: impl Fn(&Page) -> bool) -> Page {
        let mut last = self.scrape().await;
        for _ in 0..1200 {
            if so(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            last = self.scrape().await;
        }
        panic!("waited a minute for {what}: {last:#?}");
    }
}

async fn serve(listener: TcpListener, handle: PrometheusHandle) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => request.push(byte),
                Err(_) => break,
            }
        }
        let body = handle.render();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let answer = [head, body].concat();
        // Who does not wait for it does not want it.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// What `/metrics` says, line by line: name with labels, value.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    values: BTreeMap<String, f64>,
    /// By name: counter, gauge or histogram.
    pub(crate) types: BTreeMap<String, String>,
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Self {
            values: BTreeMap::new(),
            types: BTreeMap::new(),
        };
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(described) = line.strip_prefix("# TYPE ") {
                let (name, kind) = described.split_once(' ').expect("a type");
                page.types.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                let value = value.parse().expect("a number");
                let before = page.values.insert(sorted(name), value);
                assert_eq!(before, None, "{name} twice");
            }
        }
        page
    }

    /// The value of one series: labels in the order of the metric's.
    pub(crate) fn value(&self, metric: &Metric, labels: &[&str]) -> Option<f64> {
        self.part(metric, "", labels)
    }

    /// How many observations a histogram has.
    pub(crate) fn count(&self, metric: &Metric, labels: &[&str]) -> f64 {
        self.part(metric, "_count", labels).unwrap_or(0.0)
    }

    /// What they come to together.
    pub(crate) fn sum(&self, metric: &Metric, labels: &[&str]) -> f64 {
        self.part(metric, "_sum", labels).unwrap_or(0.0)
    }

    fn part(&self, metric: &Metric, suffix: &str, labels: &[&str]) -> Option<f64> {
        assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let labels = metric.labels.iter().zip(labels);
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        let name = format!("{}{suffix}", metric.name);
        let name = match labels.is_empty() {
            true => name,
            false => format!("{name}{{{}}}", labels.join(",")),
        };
        self.values.get(&sorted(&name)).copied()
    }

    /// All series of a metric, whatever their labels.
    pub(crate) fn total(&self, metric: &Metric) -> f64 {
        let of = |name: &str| name.split('{').next() == Some(metric.name);
        let values = self.values.iter().filter(|(name, _)| of(name));
        values.map(|(_, value)| value).sum()
    }

    /// Every series that only grows.
    pub(crate) fn growing(&self) -> impl Iterator<Item = (&String, f64)> {
        let grows = |name: &str| {
            let name = name.split('{').next().unwrap_or(name);
            ["_total", "_count", "_sum", "_bucket"]
                .iter()
                .any(|end| name.ends_with(end))
        };
        let values = self.values.iter().filter(move |(name, _)| grows(name));
        values.map(|(name, value)| (name, *value))
    }

    pub(crate) fn series(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

/// The name with its labels in a fixed order. No value in these tests has a comma.
fn sorted(name: &str) -> String {
    let Some((name, labels)) = name.split_once('{') else {
        return name.to_owned();
    };
    let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
    labels.sort_unstable();
    format!("{name}{{{}}}", labels.join(","))
}
