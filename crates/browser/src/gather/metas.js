// Every <meta> in the head. Shape: `Metas` in the engine's facts.
({everyElement, describe}) => {
  const LISTED = 500;
  const CONTENT_CHARS = 10_000;
  return everyElement('head meta').slice(0, LISTED).map((meta) => ({
    name: meta.name.toLowerCase(),
    content: meta.content.slice(0, CONTENT_CHARS),
    property: meta.getAttribute('property'),
    httpEquiv: meta.httpEquiv.toLowerCase(),
    charset: meta.getAttribute('charset'),
    node: describe(meta),
  }));
}
