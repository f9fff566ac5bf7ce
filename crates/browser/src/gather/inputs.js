// Every form field, and whether it allows pasting. Shape: `Inputs` in the engine's facts.
//
// Sends events to the page, and so runs last, after the page's own behaviour is recorded.
({everyElement, describe}) => {
  const LISTED = 1000;
  return everyElement('textarea, input, select').slice(0, LISTED).map((field) => {
    const paste = new ClipboardEvent('paste', {cancelable: true});
    return {
      type: field.type,
      preventsPaste: !field.readOnly && !field.dispatchEvent(paste),
      node: describe(field),
    };
  });
}
