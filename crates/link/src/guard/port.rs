//! Ports that are not used for web pages. An HTTP request to one of these is an attack on the
//! service that listens there, or a mistake.

/// The "bad ports" of the Fetch standard (<https://fetch.spec.whatwg.org/#port-blocking>) in
/// ascending order. Browsers refuse them as well.
const FETCH_BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Registered or documented default ports of databases, brokers, remote control and cluster
/// interfaces, in ascending order.
const INFRASTRUCTURE_PORTS: &[u16] = &[
    445,   // SMB
    873,   // rsync
    1433,  // SQL Server
    1434,  // SQL Server browser
    1521,  // Oracle
    2181,  // ZooKeeper
    2375,  // Docker
    2376,  // Docker over TLS
    2379,  // etcd
    2380,  // etcd peers
    3306,  // MySQL
    3389,  // remote desktop
    5432,  // PostgreSQL
    5672,  // AMQP
    5900,  // VNC
    5984,  // CouchDB
    5985,  // WinRM
    5986,  // WinRM over TLS
    6379,  // Redis
    7001,  // Cassandra peers
    9042,  // Cassandra
    9092,  // Kafka
    9200,  // Elasticsearch
    9300,  // Elasticsearch peers
    10250, // kubelet
    10255, // kubelet, read only
    11211, // memcached
    27017, // MongoDB
    27018, // MongoDB shard
    27019, // MongoDB config server
];

pub(super) fn denied(port: u16) -> bool {
    FETCH_BAD_PORTS.binary_search(&port).is_ok()
        || INFRASTRUCTURE_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lists_are_sorted_for_the_binary_search() {
        assert!(FETCH_BAD_PORTS.is_sorted() && INFRASTRUCTURE_PORTS.is_sorted());
    }

    #[test]
    fn ports_of_web_servers_are_not_denied() {
        for port in [
            80, 443, 591, 3000, 4200, 5000, 5173, 8000, 8008, 8080, 8443, 8888, 9000, 65535,
        ] {
            assert!(!denied(port), "{port}");
        }
    }

    #[test]
    fn infrastructure_is_denied() {
        for port in [0, 22, 25, 2375, 3306, 5432, 6379, 9200, 10080, 11211, 27017] {
            assert!(denied(port), "{port}");
        }
    }
}
