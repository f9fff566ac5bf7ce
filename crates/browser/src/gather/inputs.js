// Every field of a form, and whether it lets people paste. Shape: `Inputs` in the engine's facts.
//
// Sends events to the page: to be run last, when what the page did on its own is recorded.
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
