//! The JSON schema of a section, drawn from what its reader asks for.

use serde_json::{Map, Value as Json, json};

/// A section's part of the schema, while its reader runs.
#[derive(Default)]
pub(super) struct Picture {
    properties: Map<String, Json>,
    required: Vec<&'static str>,
    /// A key of the file whose section looks the same: its keys are referred to.
    refer: Option<&'static str>,
}

impl Picture {
    pub(super) fn property(&mut self, name: &str, mut schema: Json, about: &str) {
        schema["description"] = json!(about);
        if let Some(elsewhere) = self.refer {
            schema = json!({ "$ref": format!("#/properties/{elsewhere}/properties/{name}") });
        }
        self.properties.insert(name.to_owned(), schema);
    }

    pub(super) fn with_default(
        &mut self,
        name: &str,
        mut schema: Json,
        default: &Json,
        about: &str,
    ) {
        schema["default"] = json!(default);
        self.property(name, schema, about);
    }

    pub(super) fn list(&mut self, name: &str, items: &Json, default: &Json, about: &str) {
        let schema = json!({ "type": "array", "items": items, "uniqueItems": true });
        self.with_default(name, schema, default, about);
    }

    pub(super) fn list_of(&mut self, name: &str, items: &Json, about: &str) {
        self.property(
            name,
            json!({ "type": "array", "items": items, "minItems": 1 }),
            about,
        );
    }

    pub(super) fn map(&mut self, name: &str, keys: &Json, mut values: Json, about: &str) {
        // YAML reads `x-count: 5` as a number; here it is text as it is written.
        values["type"] = json!(["string", "number", "boolean"]);
        let schema =
            json!({ "type": "object", "propertyNames": keys, "additionalProperties": values });
        self.property(name, schema, about);
    }

    pub(super) fn map_of(&mut self, name: &str, values: &Json, about: &str) {
        let schema =
            json!({ "type": "object", "additionalProperties": values, "minProperties": 1 });
        self.property(name, schema, about);
    }

    pub(super) fn require(&mut self, name: &'static str) {
        self.required.push(name);
    }

    pub(super) fn refer(&mut self, elsewhere: Option<&'static str>) {
        self.refer = elsewhere;
    }

    pub(super) fn finish(self) -> Json {
        let mut schema = json!({
            "type": "object",
            "properties": self.properties,
            "additionalProperties": false,
        });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        schema
    }
}
