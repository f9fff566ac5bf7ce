// Whether the browser has WebMCP, and then every form. Shape: `WebMcp` in the engine's facts.
({everyElement, describe}) => {
  const LISTED = 1000;
  const isSupported = typeof navigator.modelContext !== 'undefined' ||
    typeof document.modelContext !== 'undefined';
  if (!isSupported) return {isSupported, forms: []};
  const forms = everyElement('form').slice(0, LISTED).map((form) => ({
    toolName: form.getAttribute('toolname'),
    toolDescription: form.getAttribute('tooldescription'),
    node: describe(form),
  }));
  return {isSupported, forms};
}
