// Every <a>. Shape: `Anchors` in the engine's facts.
//
// Anchors without href, any other attribute of a link, id, name or role are only a fault if a
// script listens to them, which a script cannot detect: they are stored in
// `globalThis.plumblinePlaceholders`, in the order of the list, each marked `isPlaceholder`, for
// the protocol to inspect.
({everyElement, describe, shorten}) => {
  const LISTED = 20_000;
  const DESCRIBED = 2000;
  const PLACEHOLDERS = 500;
  const TEXT_CHARS = 200;
  const OF_LINKS = ['href', 'target', 'download', 'ping', 'rel', 'hreflang', 'type', 'referrerpolicy'];
  const OF_TARGETS = ['id', 'name', 'role'];

  // Most pages declare one language for all: then no search is needed.
  const withLang = everyElement('[lang]');
  const hasOneLanguage = withLang.length === 1 && withLang[0].matches('html, body');
  const pageLanguage = hasOneLanguage ? withLang[0].getAttribute('lang') : null;

  const base = (lang) => lang.split('-')[0];

  // The language of the text inside; null if there are several.
  const languageOf = (anchor) => {
    if (pageLanguage !== null) return pageLanguage;
    let language = null;
    for (const child of anchor.querySelectorAll('*')) {
      const lang = child.textContent && child.closest('[lang]')?.getAttribute('lang');
      if (!lang) continue;
      if (language && base(language) !== base(lang)) return null;
      language ??= lang;
    }
    return language ?? anchor.closest('[lang]')?.getAttribute('lang') ?? null;
  };

  const resolved = (anchor) => {
    if (anchor instanceof HTMLAnchorElement) return anchor.href;
    try {
      return new URL(anchor.href.baseVal, location.href).href;
    } catch {
      return '';
    }
  };

  const placeholders = globalThis.plumblinePlaceholders = [];

  return everyElement('a').slice(0, LISTED).map((anchor, index) => {
    const isHtml = anchor instanceof HTMLAnchorElement;
    // Hidden text is not visible to readers.
    const text = (isHtml ? anchor.innerText : anchor.textContent) ?? '';
    const isPlaceholder = placeholders.length < PLACEHOLDERS &&
      !OF_LINKS.some((name) => anchor.hasAttribute(name)) &&
      !OF_TARGETS.some((name) => anchor.getAttribute(name)?.trim());
    if (isPlaceholder) placeholders.push(anchor);
    const isDescribed = index < DESCRIBED || isPlaceholder;
    return {
      href: resolved(anchor),
      rawHref: anchor.getAttribute('href') ?? '',
      role: anchor.getAttribute('role') ?? '',
      name: isHtml ? anchor.name : '',
      id: anchor.getAttribute('id') ?? '',
      text: text.slice(0, TEXT_CHARS),
      textLang: languageOf(anchor),
      rel: isHtml ? anchor.rel : '',
      attributeNames: anchor.getAttributeNames(),
      isPlaceholder,
      node: isDescribed ? describe(anchor) : {label: shorten(text, 80) || 'a', selector: 'a'},
    };
  });
}
