//! JSON of any kind, and JSON that almost fits a schema.

use serde_json::{Map, Value, json};

use crate::source::Source;

/// A random value, with little nesting.
pub(crate) fn any(source: &mut Source<'_>, depth: usize) -> Value {
    match source.below(if depth == 0 { 8 } else { 10 }) {
        0 => Value::Null,
        1 => json!(source.flag()),
        2 => json!(source.byte()),
        3 => source.pick(&[-1_i64, 0, 1, i64::MAX, i64::MIN, 1 << 32, (1 << 32) - 1]).into(),
        4 => source.pick(&[0.5, 2.0, -0.0, 1e308, 1e15]).into(),
        5 => json!(u64::MAX),
        6 => "".into(),
        7 => String::from_utf8_lossy(source.until_zero(20)).into_owned().into(),
        8 => (0..source.below(4)).map(|_| any(source, depth - 1)).collect(),
        _ => (0..source.below(4))
            .map(|_| (String::from_utf8_lossy(source.until_zero(8)).into_owned(), any(source, depth - 1)))
            .collect(),
    }
}

/// A value that fits a schema; `text` generates strings by the name of the field. Occasionally the value does not fit.
pub(crate) fn fitting(
    source: &mut Source<'_>,
    schema: &Value,
    name: &str,
    text: &mut dyn FnMut(&mut Source<'_>, &str) -> String,
) -> Value {
    if source.below(32) == 31 {
        return any(source, 2);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.get(source.below(values.len().max(1))).cloned().unwrap_or_default();
    }
    if let Some(variants) = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array()) {
        let variant = &variants[source.below(variants.len().max(1))];
        return variant.get("const").cloned().unwrap_or_else(|| fitting(source, variant, name, text));
    }
    match schema["type"].as_str() {
        Some("object") => object(source, schema, text),
        Some("array") => (0..source.below(4)).map(|_| fitting(source, &schema["items"], name, text)).collect(),
        Some("boolean") => json!(source.flag()),
        Some("integer" | "number") => json!(source.below(16)),
        Some("string") => text(source, name).into(),
        _ => any(source, 2),
    }
}

fn object(source: &mut Source<'_>, schema: &Value, text: &mut dyn FnMut(&mut Source<'_>, &str) -> String) -> Value {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut fields = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        // Required fields are mostly present, the others occasionally.
        let is_there = if required.contains(&name.as_str()) { source.below(16) != 15 } else { source.below(3) == 2 };
        if is_there {
            fields.insert(name.clone(), fitting(source, field, name, text));
        }
    }
    if source.below(32) == 31 {
        fields.insert("extra".to_owned(), any(source, 1));
    }
    Value::Object(fields)
}

/// Removes or replaces a random part of the value.
pub(crate) fn spoiled(source: &mut Source<'_>, value: &mut Value) {
    let parts = count(value);
    let mut nth = usize::from(source.byte()) % parts.max(1);
    let with = source.flag().then(|| any(source, 2));
    spoil(value, &mut nth, &with);
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn spoil(value: &mut Value, nth: &mut usize, with: &Option<Value>) {
    if *nth == 0 {
        *value = with.clone().unwrap_or_default();
        *nth = usize::MAX;
        return;
    }
    *nth = nth.saturating_sub(1);
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| {
            if *nth < usize::MAX - 1_000_000 {
                spoil(field, nth, with)
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| {
            if *nth < usize::MAX - 1_000_000 {
                spoil(item, nth, with)
            }
        }),
        _ => {}
    }
}
