// The main document as a whole, and its window. Shape: `Page` in the engine's facts.
() => {
  const {doctype, compatMode} = document;
  return {
    url: location.href,
    compatMode,
    doctype: doctype && {
      name: doctype.name,
      publicId: doctype.publicId,
      systemId: doctype.systemId,
    },
    innerWidth,
    innerHeight,
    outerWidth,
    outerHeight,
    devicePixelRatio,
  };
}
