//! A metrics recorder for one test, an HTTP server for its `/metrics`, and a parser of that page.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use metrics::{LocalRecorderGuard, set_default_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use outbox::metrics::{Metric, SECONDS_BUCKETS, SIZE_BUCKETS};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Records all metrics of this thread while it exists. The tests run on one thread.
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
        // The leak is harmless: the process of the test ends soon.
        let recorder = Box::leak(Box::new(recorder));
        Self {
            address,
            _recorder: set_default_local_recorder(recorder),
        }
    }

    /// Requests `/metrics`.
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

    /// Scrapes until `holds` accepts the page; panics with the last page after 60 seconds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
        let mut last = self.scrape().await;
        for _ in 0..1200 {
            if holds(&last) {
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
        // A client that has closed the connection does not need the answer.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// The lines of `/metrics`: name with labels, and value.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    values: BTreeMap<String, f64>,
    /// The kind of each metric, by name: counter, gauge or histogram.
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
                let (name, number) = line.rsplit_once(' ').expect("a value");
                let value = number.parse().expect("a number");
                let before = page.values.insert(sorted(name), value);
                assert_eq!(before, None, "{name} twice");
            }
        }
        page
    }

    /// The value of one series: labels in the order of the metric's.
    pub(crate) fn value(&self, metric: &Metric, labels: &[&str]) -> Option<f64> {
        self.suffixed(metric, "", labels)
    }

    /// The number of observations of a histogram.
    pub(crate) fn count(&self, metric: &Metric, labels: &[&str]) -> f64 {
        self.suffixed(metric, "_count", labels).unwrap_or(0.0)
    }

    /// The sum of the observations of a histogram.
    pub(crate) fn sum(&self, metric: &Metric, labels: &[&str]) -> f64 {
        self.suffixed(metric, "_sum", labels).unwrap_or(0.0)
    }

    fn suffixed(&self, metric: &Metric, suffix: &str, labels: &[&str]) -> Option<f64> {
        assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let pairs: Vec<String> = (metric.labels.iter().zip(labels))
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        let mut name = format!("{}{suffix}", metric.name);
        if !pairs.is_empty() {
            name += &format!("{{{}}}", pairs.join(","));
        }
        self.values.get(&sorted(&name)).copied()
    }

    /// The sum of all series of a metric.
    pub(crate) fn total(&self, metric: &Metric) -> f64 {
        let is_of_metric = |name: &str| name.split('{').next() == Some(metric.name);
        let values = self.values.iter().filter(|(name, _)| is_of_metric(name));
        values.map(|(_, value)| value).sum()
    }

    /// Every series that must not decrease.
    pub(crate) fn growing(&self) -> impl Iterator<Item = (&String, f64)> {
        let grows = |series: &str| {
            let name = series.split('{').next().unwrap_or(series);
            ["_total", "_count", "_sum", "_bucket"]
                .iter()
                .any(|suffix| name.ends_with(suffix))
        };
        let values = self.values.iter().filter(move |(name, _)| grows(name));
        values.map(|(name, value)| (name, *value))
    }

    pub(crate) fn series(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

/// The name with its labels in a fixed order. No label value in these tests has a comma.
fn sorted(name: &str) -> String {
    let Some((name, labels)) = name.split_once('{') else {
        return name.to_owned();
    };
    let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
    labels.sort_unstable();
    format!("{name}{{{}}}", labels.join(","))
}
