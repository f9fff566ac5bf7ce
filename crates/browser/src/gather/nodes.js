// Shared by the other scripts: finds elements, and describes them so that a person can find them
// again. Lengths and shapes follow Lighthouse 13.5 (core/lib/page-functions.js), so that both name
// an element alike. Runs in our own world, which the page's changes to built-ins do not reach.
(() => {
  const LABEL_CHARS = 80;
  const ATTRIBUTE_CHARS = 75;
  const SNIPPET_CHARS = 500;
  const SELECTOR_PARTS = 4;
  // Autofill adds them; a tooltip does not describe the element.
  const OMITTED = new Set(['autofill-information', 'autofill-prediction', 'title']);

  const segmenter = new Intl.Segmenter(undefined, {granularity: 'grapheme'});

  // Cuts between grapheme clusters.
  const shorten = (text, limit) => {
    if (text.length <= limit) return text;
    let count = 0;
    let cut = 0;
    for (const {index} of segmenter.segment(text)) {
      if (++count === limit) cut = index;
      if (count > limit) return text.slice(0, cut) + '…';
    }
    return text;
  };

  // Every element, open shadow trees included; closed ones and frames are inaccessible.
  const everyElement = (selector = '*') => {
    const found = [];
    const collect = (root) => {
      for (const element of root.querySelectorAll('*')) {
        if (element.matches(selector)) found.push(element);
        if (element.shadowRoot) collect(element.shadowRoot);
      }
    };
    collect(document);
    return found;
  };

  const selectorOf = (element) => {
    const parts = [];
    for (let at = element; at && parts.length < SELECTOR_PARTS; at = at.parentElement) {
      if (parts.length && at.tagName === 'HTML') break;
      const mark = at.id ? `#${at.id}` : at.classList.length ? `.${at.classList[0]}` : '';
      parts.unshift(at.tagName.toLowerCase() + mark);
    }
    return parts.join(' > ');
  };

  // The index of each child among those that are not blank text, computed once per parent.
  const indexes = new WeakMap();
  const indexOf = (node, parent) => {
    let cache = indexes.get(parent);
    if (!cache?.has(node)) {
      cache = new Map();
      let index = 0;
      for (const child of parent.childNodes) {
        cache.set(child, index);
        if (child.nodeType !== Node.TEXT_NODE || child.nodeValue.trim()) index++;
      }
      indexes.set(parent, cache);
    }
    return cache.get(node);
  };

  // As DevTools writes it: index among siblings and name, from the document down.
  const pathOf = (element) => {
    const steps = [];
    let node = element;
    while (node) {
      const isShadow = node.nodeType === Node.DOCUMENT_FRAGMENT_NODE;
      const parent = isShadow ? node.host : node.parentNode;
      if (!parent) break;
      const index = isShadow ? 'a' : indexOf(node, parent);
      steps.unshift(`${index},${node.nodeName}`);
      node = parent;
    }
    return steps.join(',');
  };

  const valueOf = (element, {name, value}) => {
    if (name !== 'src' || !('currentSrc' in element)) return value;
    try {
      const isChosen = new URL(value, document.baseURI).href === element.currentSrc;
      return isChosen ? value : element.currentSrc;
    } catch {
      return value;
    }
  };

  const escaped = (value) => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;');

  // The opening tag. Serialized here, because a clone of a custom element could run the page's
  // code.
  const snippetOf = (element) => {
    let chars = 0;
    let tag = `<${element.localName}`;
    for (const attribute of element.attributes) {
      if (OMITTED.has(attribute.name)) continue;
      if (chars > SNIPPET_CHARS) return `${tag} …>`;
      const value = shorten(valueOf(element, attribute), ATTRIBUTE_CHARS);
      chars += attribute.name.length + value.length;
      tag += ` ${attribute.name}="${escaped(value)}"`;
    }
    return chars > SNIPPET_CHARS ? `${tag} …>` : `${tag}>`;
  };

  const labelOf = (element) => {
    if (element.matches('html, body')) return '';
    const own = (element instanceof HTMLElement && element.innerText) ||
      element.getAttribute('alt') || element.getAttribute('aria-label');
    if (own) return shorten(own, LABEL_CHARS);
    const inside = element.querySelector('[alt], [aria-label]');
    return inside ? labelOf(inside) : '';
  };

  const rectOf = (element) => {
    const {left, top, width, height} = element.getBoundingClientRect();
    return {left, top, width, height};
  };

  // True if it clips an element: not if the element is positioned past it (CSS 2.2, 11.1.1), and
  // not the root, whose overflow is the viewport's; nor the body if it propagates its own to the
  // root (CSS Overflow 3, 3.3).
  const clips = (around) => {
    const {overflowX, overflowY} = getComputedStyle(around);
    if (overflowX === 'visible' && overflowY === 'visible') return false;
    if (around === document.documentElement) return false;
    const root = getComputedStyle(document.documentElement);
    return around !== document.body || root.overflowX !== 'visible' || root.overflowY !== 'visible';
  };

  // Many elements share their ancestors.
  const cache = new Map();
  const frameOf = (around) => {
    if (!cache.has(around)) {
      const edge = clips(around) ? around.getBoundingClientRect() : null;
      cache.set(around, {position: getComputedStyle(around).position, edge});
    }
    return cache.get(around);
  };

  // The visible part of an element's box; null if that is all of it.
  const visibleOf = (element) => {
    const box = element.getBoundingClientRect();
    let {left, top, right, bottom} = box;
    let position = getComputedStyle(element).position;
    const parent = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host;
    for (let around = parent(element); around && position !== 'fixed'; around = parent(around)) {
      const frame = frameOf(around);
      if (position === 'absolute' && frame.position === 'static') continue;
      if (frame.edge) {
        const {edge} = frame;
        left = Math.max(left, edge.left);
        top = Math.max(top, edge.top);
        right = Math.min(right, edge.right);
        bottom = Math.min(bottom, edge.bottom);
      }
      position = frame.position;
    }
    const [width, height] = [Math.max(0, right - left), Math.max(0, bottom - top)];
    const whole = Math.abs(width - box.width) < 1 && Math.abs(height - box.height) < 1;
    return whole ? null : rounded({left, top, width, height});
  };

  const rounded = (rect) =>
    Object.fromEntries(Object.entries(rect).map(([side, px]) => [side, Math.round(px)]));

  const describe = (node) => {
    const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement ?? node.host;
    if (!element) return null;
    const selector = selectorOf(element);
    const seen = visibleOf(element);
    return {
      selector,
      snippet: snippetOf(element),
      label: labelOf(element) || selector,
      path: pathOf(element),
      rect: rounded(rectOf(element)),
      ...(seen && {seen}),
    };
  };

  return {everyElement, describe, shorten, rectOf};
})()
