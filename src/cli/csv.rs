//! Rows of one flat type as a CSV file: the header from the names of the fields.

use std::fmt;
use std::path::Path;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::publish;

/// Write `rows` to `path`; an existing file keeps its content until the new one is complete.
pub(crate) fn write<T: Serialize>(path: &Path, rows: &[T]) -> anyhow::Result<()> {
    let mut text = String::new();
    for row in rows {
        let fields = fields(row)?;
        if text.is_empty() {
            push_line(&mut text, fields.iter().map(|(name, _)| name.clone()));
        }
        push_line(&mut text, fields.iter().map(|(_, value)| cell(value)));
    }
    publish::whole(path, &text)
}

/// Names and values of a row, in its order. Through JSON, as all outputs then have the same names
/// and the same digits.
pub(crate) fn fields<T: Serialize>(row: &T) -> anyhow::Result<Vec<(String, Value)>> {
    let Fields(fields) = serde_json::from_str(&serde_json::to_string(row)?)?;
    Ok(fields)
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&cell);
    }
    text.push('\n');
}

/// Quoted where a comma or a quote would break the line; nothing for null.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(s) if s.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", s.replace('"', "\"\""))
        }
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// The fields of an object in the order they were written.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        z: u64,
        a: Option<f32>,
        text: &'static str,
    }

    #[test]
    fn columns_keep_their_order_and_awkward_cells_are_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let rows = [Row { z: 1, a: Some(0.5), text: "x" }, Row { z: 2, a: None, text: "a,\"b\"" }];
        write(&path, &rows).unwrap();
        let text = fs_err::read_to_string(&path).unwrap();
        assert_eq!(text, "z,a,text\n1,0.5,x\n2,,\"a,\"\"b\"\"\"\n");
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    }
}
