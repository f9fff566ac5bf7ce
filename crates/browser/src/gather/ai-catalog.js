// The URL of the site's ai-catalog.json that a link element names, or an empty text.
() => {
  const link = document.querySelector('link[rel~="ai-catalog" i]');
  return link instanceof HTMLLinkElement ? link.href : '';
}
