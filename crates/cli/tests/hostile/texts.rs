//! Texts that Plumbline itself parses: manifests, robots.txt, texts for agents, and source maps.

use std::io::Write;

use crate::bombs;
use crate::site::{Connection, Written};
use crate::websocket;

impl Connection {
    pub fn manifest(&mut self) -> Written {
        let kind = "application/manifest+json";
        let icon =
            r#"{"src": "/giant.png", "sizes": "99999999x99999999 ((((", "type": "image/png"},"#;
        let text = format!(
            r#"{{"name": "{}", "start_url": "{}", "display": [[[[]]]], "icons": [{}{{}}], "deep": {}{}}}"#,
            "n".repeat(1_000_000),
            "../".repeat(100_000),
            icon.repeat(20_000),
            "[".repeat(100_000),
            "]".repeat(100_000),
        );
        self.whole("200 OK", kind, "", text.as_bytes())
    }

    /// Sends a robots.txt by site: patterns that are exponential for a backtracking matcher, a
    /// compression bomb, an endless file, and no response. Other sites have none.
    pub fn robots_txt(&mut self) -> Written {
        match self.site()? {
            40 => {}
            39 => {
                self.begin("text/plain", "Content-Encoding: gzip\r\n")?;
                self.stream.write_all(&bombs::GZIP_HEAD)?;
                return self.repeat(bombs::megabyte_of_spaces());
            }
            38 => {
                self.begin("text/plain", "")?;
                return self.repeat("Disallow: /*\n".repeat(5000).as_bytes());
            }
            37 => return self.hostile_response("hang"),
            _ => return self.hostile_response("none"),
        }
        let mut text = format!("User-agent: *\nDisallow: /{}$\n", "*a".repeat(1000));
        for number in 0..2000 {
            text += &format!(
                "Allow: /*.*.*.*{}*?*{number}$\nSitemap: http://[{number}\n",
                "*".repeat(50)
            );
        }
        text += &"x".repeat(100_000);
        self.whole("200 OK", "text/plain", "", text.as_bytes())
    }

    /// Sends the llms.txt or the AI catalog of a site: one that is hard to parse, a compression
    /// bomb, an endless file, and no response. Other sites have none.
    pub fn text_for_agents(&mut self) -> Written {
        let is_catalog = self.path.ends_with(".json");
        let kind = if is_catalog {
            "application/json"
        } else {
            "text/markdown"
        };
        match self.site()? {
            36 => {}
            35 => {
                self.begin(kind, "Content-Encoding: gzip\r\n")?;
                self.stream.write_all(&bombs::GZIP_HEAD)?;
                return self.repeat(bombs::megabyte_of_spaces());
            }
            34 => {
                self.begin(kind, "")?;
                let entry = if is_catalog { "[[[[" } else { "# [a](" };
                return self.repeat(entry.repeat(5000).as_bytes());
            }
            33 => return self.hostile_response("hang"),
            _ => return self.hostile_response("none"),
        }
        let text = if is_catalog {
            let entry = format!(
                r#"{{"identifier": "urn:{}", "url": "http://[", "data": {}0{}}},"#,
                "a:".repeat(500),
                "[".repeat(90),
                "]".repeat(90)
            );
            format!(
                r#"{{"specVersion": "1.0", "entries": [{}{{}}]}}"#,
                entry.repeat(300)
            )
        } else {
            format!(
                "{}\n{}",
                "# ((((((".repeat(10_000),
                "- [[[[a]](b)](c)\n".repeat(20_000)
            )
        };
        self.whole("200 OK", kind, "", text.as_bytes())
    }

    pub fn script_with_map(&mut self) -> Written {
        let kind = self.query.clone();
        // Nested, repeated and unclosed code, for the detection of legacy code.
        let code = format!(
            "var s_{kind} = \"{}\";\n/*{}*/\nfunction f_{kind}(){{{}}}\n",
            "Array.prototype.map=function(){".repeat(20_000),
            "(((((a+)+)+)+)+)".repeat(20_000),
            "var a=[1,2,3];".repeat(20_000)
        );
        let map = if kind == "data" {
            let packed = websocket::base64(source_map("mappings").as_bytes());
            format!("data:application/json;base64,{packed}")
        } else {
            format!("/source-map?{kind}")
        };
        let text = format!("{code}//# sourceMappingURL={map}\n");
        self.whole("200 OK", "text/javascript", "", text.as_bytes())
    }

    pub fn source_map(&mut self) -> Written {
        let kind = self.query.clone();
        match kind.as_str() {
            "bomb" => {
                self.begin("application/json", "Content-Encoding: gzip\r\n")?;
                self.stream.write_all(&bombs::GZIP_HEAD)?;
                self.repeat(bombs::megabyte_of_spaces())
            }
            "endless" => {
                self.begin("application/json", "")?;
                self.stream.write_all(br#"{"version":3,"mappings":""#)?;
                self.repeat(&[b'A'; 1 << 16])
            }
            kind => self.whole(
                "200 OK",
                "application/json",
                "",
                source_map(kind).as_bytes(),
            ),
        }
    }
}

/// Returns a source map that is hard to parse in the named way.
fn source_map(kind: &str) -> String {
    match kind {
        "sections" => {
            let section = r#"{"offset":{"line":9999999999,"column":-1},"map":{"version":3,"sources":[],"mappings":""}},"#;
            format!(
                r#"{{"version":3,"sections":[{}null]}}"#,
                section.repeat(50_000)
            )
        }
        "sources" => {
            let sources =
                r#""../../../node_modules/core-js/modules/es.array.map.js","#.repeat(200_000);
            format!(r#"{{"version":3,"sources":[{sources}"x"],"mappings":"AAAA"}}"#)
        }
        "deep" => format!(r#"{{"version":3,"sources":{}"#, "[".repeat(1_000_000)),
        "negative" => {
            let mappings = "D//////////////D,D/////////////////D;".repeat(20_000);
            format!(r#"{{"version":3,"sources":["a"],"mappings":"{mappings}"}}"#)
        }
        "mappings" => {
            let mappings = "AAAA,CAAC,EAAE;".repeat(400_000);
            format!(r#"{{"version":3,"sources":["a","b"],"mappings":"{mappings}"}}"#)
        }
        _ => format!(
            r#"{{"version":3,"sources":["a"],"mappings":"{}"}}"#,
            "AAAA;".repeat(20_000)
        ),
    }
}
