// Every <link>. Shape: `Links` in the engine's facts.
({everyElement, describe}) => {
  const LISTED = 2000;
  return everyElement('link')
    // SVG may contain elements of that name too.
    .filter((link) => link instanceof HTMLLinkElement)
    .slice(0, LISTED)
    .map((link) => ({
      rel: link.rel,
      href: link.href,
      rawHref: link.getAttribute('href') ?? '',
      hreflang: link.hreflang,
      source: link.closest('head') ? 'head' : 'body',
      node: describe(link),
    }));
}
