// Prepares this field for a value. Returns "type" if the value has to be typed into it, "done" if it
// has the value already, or a text on why it cannot have it.
function (value) {
  const announce = () => {
    this.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    this.dispatchEvent(new Event("change", { bubbles: true }));
  };
  // Screenshots must not show what is typed.
  const conceal = () => this.style.setProperty("-webkit-text-security", "disc", "important");
  const selectContent = () => {
    const selection = getSelection();
    selection.selectAllChildren(this);
  };
  if (this instanceof HTMLSelectElement) {
    const options = [...this.options];
    const label = (option) => option.label.trim();
    const option =
      options.find((option) => option.value === value) ??
      options.find((option) => label(option) === value);
    if (!option) return "has no such option";
    if (!this.multiple) this.value = option.value;
    option.selected = true;
    announce();
    return "done";
  }
  if (this instanceof HTMLInputElement && ["checkbox", "radio"].includes(this.type)) {
    if (this.checked !== ["true", "on", "1"].includes(value)) this.click();
    return "done";
  }
  const isTyped = ["text", "password", "email", "search", "tel", "url", "number"];
  if (this instanceof HTMLInputElement && this.type === "file") return "takes a file";
  if (this instanceof HTMLInputElement && !isTyped.includes(this.type)) {
    this.focus();
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(this, value);
    announce();
    return this.value === value ? "done" : "does not take this value";
  }
  const isField = this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement;
  if (!isField && !this.isContentEditable) return "is not a field";
  if (this.readOnly) return "is read-only";
  this.focus();
  conceal();
  if (isField) this.select();
  else selectContent();
  if (value === "") {
    document.execCommand("delete");
    return "done";
  }
  return "type";
}
