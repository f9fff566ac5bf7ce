//! Finds elements of the page and of its frames, and the points on them that a mouse can reach.

use std::time::Instant;

use plumbline_seam::{Selector, Selectors, Step};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Runner;
use super::error::StepError;
use super::waiting::{next_check, time_until};
use crate::page::Caller;
use crate::protocol::CallError;

/// The group of all references to objects in the page, which are released before each search.
const GROUP: &str = "steps";

/// Roles of texts, which are found with the element that contains them.
const TEXT_ROLES: [&str; 2] = ["StaticText", "InlineTextBox"];

/// A reference to an object in a document.
pub(super) struct Object {
    caller: Caller,
    id: String,
}

/// The elements that a selector finds.
pub(super) struct Elements {
    pub(super) number: u32,
    /// The first visible element, or the first if none is visible.
    first: Object,
    /// The elements of the frames around it, from the outermost on.
    frames: Vec<Object>,
}

/// A document in which elements are searched for.
pub(super) struct Scope {
    pub(super) document: Object,
    frames: Vec<Object>,
}

/// The result of a call that returns an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    result: Remote,
    #[serde(default)]
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remote {
    #[serde(default)]
    object_id: Option<String>,
    #[serde(default)]
    value: Value,
}

/// The position of an element in its viewport, or the reason why it cannot be used yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Readiness {
    At([f64; 4]),
    NotReady(String),
}

/// A point in the viewport of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Runner<'_> {
    /// Waits until an element can be used, and returns it with the point at an offset from its
    /// corner, or in its middle.
    pub(super) async fn usable_element(
        &mut self,
        step: &Step,
        selectors: &Selectors,
        offset: (Option<f64>, Option<f64>),
        deadline: Instant,
    ) -> Result<(Object, Point), StepError> {
        loop {
            let reason = match self.find_all(step, selectors, deadline).await? {
                None => format!("no element matches `{selectors}`"),
                Some(elements) => match self.point_on(&elements, offset, deadline).await? {
                    Ok(point) => return Ok((elements.first, point)),
                    Err(reason) => format!("the element `{selectors}` {reason}"),
                },
            };
            if !next_check(&mut self.page, deadline).await? {
                return Err(StepError::Failed(reason));
            }
        }
    }

    /// Returns the elements that the first successful alternative finds.
    pub(super) async fn find_all(
        &mut self,
        step: &Step,
        selectors: &Selectors,
        deadline: Instant,
    ) -> Result<Option<Elements>, StepError> {
        for path in &selectors.0 {
            match self.find_path(step, path, deadline).await {
                Ok(Some(elements)) => return Ok(Some(elements)),
                // The selector is invalid, a document is being replaced, or an element was removed.
                Ok(None) | Err(StepError::Failed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn find_path(
        &mut self,
        step: &Step,
        path: &[String],
        deadline: Instant,
    ) -> Result<Option<Elements>, StepError> {
        let Some(scope) = self.scope(&step.frame, deadline).await? else {
            return Ok(None);
        };
        let mut root = scope.document;
        let mut number = 0;
        for part in path {
            let list = match Selector::of(part) {
                Selector::Aria { name, role } => {
                    self.find_by_name(&root, name, role, deadline).await?
                }
                selector => {
                    let (kind, text) = match selector {
                        Selector::Pierce(text) => ("pierce", text),
                        Selector::XPath(text) => ("xpath", text),
                        Selector::Text(text) => ("text", text),
                        Selector::Css(text) => ("css", text),
                        Selector::Aria { name, .. } => ("css", name),
                    };
                    let function = include_str!("find.js");
                    let found = self.call_on(&root, function, json!([kind, text]), deadline);
                    found.await?
                }
            };
            let Some(list) = list else {
                return Ok(None);
            };
            let counting = "function () { return this.length; }";
            number = self.value_of(&list, counting, json!([]), deadline).await?;
            let function = include_str!("first.js");
            match self.call_on(&list, function, json!([]), deadline).await? {
                Some(first) => root = first,
                None => return Ok(None),
            }
        }
        Ok(Some(Elements {
            number,
            first: root,
            frames: scope.frames,
        }))
    }

    /// Returns the document of the page, or of a frame in it.
    pub(super) async fn scope(
        &mut self,
        frame: &[u32],
        deadline: Instant,
    ) -> Result<Option<Scope>, StepError> {
        #[derive(Deserialize)]
        struct Described {
            node: Node,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            #[serde(default)]
            frame_id: Option<String>,
        }
        let mut caller = self.page.caller();
        caller.send(
            "Runtime.releaseObjectGroup",
            json!({ "objectGroup": GROUP }),
        );
        let mut document = self.document(&caller, deadline).await?;
        let mut frames = Vec::new();
        for position in frame {
            let function = "function (position) {
                return this.querySelectorAll('iframe, frame')[position] ?? null;
            }";
            let element = self.call_on(&document, function, json!([position]), deadline);
            let Some(element) = element.await? else {
                return Ok(None);
            };
            let params = json!({ "objectId": element.id });
            let describing = caller.call::<Described>("DOM.describeNode", params);
            let described = self.page.drive(describing).await?;
            let Some(frame_id) = described.node.frame_id else {
                return Ok(None);
            };
            frames.push(element);
            caller = self.page.caller_of_frame(&frame_id);
            document = self.document(&caller, deadline).await?;
        }
        Ok(Some(Scope { document, frames }))
    }

    async fn document(&mut self, caller: &Caller, deadline: Instant) -> Result<Object, StepError> {
        let remaining = time_until(deadline);
        let context = self.page.drive(caller.create_world(remaining)).await?;
        let params = json!({
            "expression": "document",
            "contextId": context,
            "objectGroup": GROUP,
        });
        let evaluating = caller.call_within::<Response>(remaining, "Runtime.evaluate", params);
        let response = self.page.drive(evaluating).await?;
        let id = response.result.object_id;
        let id = id.ok_or_else(|| StepError::failed("the page has no document"))?;
        Ok(Object {
            caller: caller.clone(),
            id,
        })
    }

    /// Returns a list of elements with an accessible name, and with a role if one is given.
    async fn find_by_name(
        &mut self,
        root: &Object,
        name: &str,
        role: Option<&str>,
        deadline: Instant,
    ) -> Result<Option<Object>, StepError> {
        #[derive(Deserialize)]
        struct Tree {
            nodes: Vec<Node>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            #[serde(default)]
            ignored: bool,
            #[serde(default)]
            role: Role,
            #[serde(default, rename = "backendDOMNodeId")]
            backend_node_id: Option<i64>,
        }
        #[derive(Default, Deserialize)]
        struct Role {
            #[serde(default)]
            value: String,
        }
        #[derive(Deserialize)]
        struct Resolved {
            object: Remote,
        }
        let mut params = json!({ "objectId": root.id });
        if !name.is_empty() {
            params["accessibleName"] = json!(name);
        }
        if let Some(role) = role {
            params["role"] = json!(role);
        }
        let remaining = time_until(deadline);
        let method = "Accessibility.queryAXTree";
        let querying = root.caller.call_within::<Tree>(remaining, method, params);
        let tree = self.page.drive(querying).await?;
        let nodes = tree
            .nodes
            .into_iter()
            .filter(|node| !node.ignored && !TEXT_ROLES.contains(&node.role.value.as_str()));
        let mut elements = Vec::new();
        for node in nodes.filter_map(|node| node.backend_node_id).take(16) {
            let params = json!({ "backendNodeId": node, "objectGroup": GROUP });
            let resolving = root.caller.call::<Resolved>("DOM.resolveNode", params);
            let resolved = self.page.drive(resolving).await?;
            elements.extend(resolved.object.object_id);
        }
        let Some(first) = elements.first() else {
            return Ok(None);
        };
        // The elements belong to the page's own world, and so does their list.
        let arguments: Vec<Value> = elements
            .iter()
            .map(|id| json!({ "objectId": id }))
            .collect();
        let first = Object {
            caller: root.caller.clone(),
            id: first.clone(),
        };
        let function = "function (...elements) { return elements; }";
        self.call_with(&first, function, json!(arguments), deadline)
            .await
    }

    /// Returns the point of an element, or the reason why it cannot be used yet.
    async fn point_on(
        &mut self,
        elements: &Elements,
        offset: (Option<f64>, Option<f64>),
        deadline: Instant,
    ) -> Result<Result<Point, String>, StepError> {
        // The element scrolls within its own document only.
        self.corner_of(&elements.frames, deadline).await?;
        let function = include_str!("ready.js");
        let readiness = self.value_of(&elements.first, function, json!([]), deadline);
        let [left, top, width, height] = match readiness.await {
            Ok(Readiness::At(position)) => position,
            Ok(Readiness::NotReady(reason)) => return Ok(Err(reason)),
            Err(StepError::Failed(_)) => return Ok(Err("was removed".to_owned())),
            Err(error) => return Err(error),
        };
        let (frame_x, frame_y) = self.corner_of(&elements.frames, deadline).await?;
        let x = frame_x + left + offset.0.unwrap_or(width / 2.0);
        let y = frame_y + top + offset.1.unwrap_or(height / 2.0);
        // A page that is wider than the window may be zoomed out. Chromium takes the positions of
        // the mouse in CSS pixels, and those of touches in pixels of the window.
        let remaining = time_until(deadline);
        let script = "[visualViewport.offsetLeft, visualViewport.offsetTop]";
        let [left, top]: [f64; 2] = self.page.evaluate(remaining, script).await?;
        Ok(Ok(Point {
            x: x - left,
            y: y - top,
        }))
    }

    /// Scrolls frames into view and returns the position of the document in the innermost one.
    async fn corner_of(
        &mut self,
        frames: &[Object],
        deadline: Instant,
    ) -> Result<(f64, f64), StepError> {
        let (mut x, mut y) = (0.0, 0.0);
        for frame in frames {
            let function = include_str!("frame-corner.js");
            let [left, top]: [f64; 2] = self.value_of(frame, function, json!([]), deadline).await?;
            x += left;
            y += top;
        }
        Ok((x, y))
    }

    /// Returns whether the first element has the expected visibility, attributes and properties.
    pub(super) async fn is_as_expected(
        &mut self,
        elements: &Elements,
        expected: &Value,
        deadline: Instant,
    ) -> Result<bool, StepError> {
        let function = include_str!("state.js");
        let state = self.value_of(&elements.first, function, json!([expected]), deadline);
        match state.await {
            Err(StepError::Failed(_)) => Ok(false),
            result => result,
        }
    }

    /// Calls a function on an object and returns its value.
    pub(super) async fn value_of<T: DeserializeOwned>(
        &mut self,
        object: &Object,
        function: &str,
        arguments: Value,
        deadline: Instant,
    ) -> Result<T, StepError> {
        let response = self
            .call_function(object, function, values(&arguments), true, deadline)
            .await?;
        serde_json::from_value(response.result.value)
            .map_err(|_| StepError::failed("a script in the page failed"))
    }

    /// Calls a function on an object and returns the object that it returns; `None` for null.
    async fn call_on(
        &mut self,
        object: &Object,
        function: &str,
        arguments: Value,
        deadline: Instant,
    ) -> Result<Option<Object>, StepError> {
        self.call_with(object, function, values(&arguments), deadline)
            .await
    }

    async fn call_with(
        &mut self,
        object: &Object,
        function: &str,
        arguments: Value,
        deadline: Instant,
    ) -> Result<Option<Object>, StepError> {
        let response = self
            .call_function(object, function, arguments, false, deadline)
            .await?;
        Ok(response.result.object_id.map(|id| Object {
            caller: object.caller.clone(),
            id,
        }))
    }

    async fn call_function(
        &mut self,
        object: &Object,
        function: &str,
        arguments: Value,
        by_value: bool,
        deadline: Instant,
    ) -> Result<Response, StepError> {
        let params = json!({
            "objectId": object.id,
            "functionDeclaration": function,
            "arguments": arguments,
            "awaitPromise": true,
            "returnByValue": by_value,
        });
        let method = "Runtime.callFunctionOn";
        let remaining = time_until(deadline);
        let calling = object
            .caller
            .call_within::<Response>(remaining, method, params);
        let response = self.page.drive(calling).await?;
        if response.exception_details.is_some() {
            let reason = "the script failed".to_owned();
            return Err(CallError::InvalidResponse { method, reason }.into());
        }
        Ok(response)
    }
}

/// Returns values as arguments of a call.
fn values(arguments: &Value) -> Value {
    let arguments = arguments.as_array().map_or(&[][..], Vec::as_slice);
    let arguments = arguments.iter().map(|value| json!({ "value": value }));
    arguments.collect()
}
