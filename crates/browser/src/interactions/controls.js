// Returns the visible controls of the page that an input can be made on without leaving it. The
// elements stay in our world, so that a control can be named by its index.
(({everyElement, describe, shorten}) => {
  const MAX_CONTROLS = 300;
  const NAME_CHARS = 80;
  const ROLES = [
    'button', 'tab', 'menuitem', 'switch', 'checkbox', 'radio', 'combobox', 'searchbox', 'textbox',
  ];
  const SELECTOR = [
    'button, summary, select, textarea, input, a[href], [aria-expanded], [aria-haspopup]',
    ...ROLES.map((role) => `[role="${role}"]`),
  ].join(', ');
  // Inputs that open a window of the system, send a form, or take a secret.
  const SKIPPED_TYPES = new Set([
    'file', 'color', 'date', 'datetime-local', 'month', 'week', 'time', 'hidden', 'password', 'submit',
    'image', 'reset',
  ]);
  const TEXT_TYPES = new Set(['text', 'search', 'email', 'tel', 'url', 'number']);
  // Words on controls that a stranger should not press, in common languages of the web.
  const RISKY = new RegExp([
    'log ?out', 'sign ?out', 'delete', 'remove account', 'unsubscribe', 'pay', 'buy now', 'place order',
    'abmelden', 'löschen', 'kaufen', 'déconnexion', 'supprimer', 'cerrar sesión', 'eliminar',
  ].map((word) => `(?<!\\p{L})${word}(?!\\p{L})`).join('|'), 'iu');
  const CONSENT_AREA = /cookie|consent|gdpr|privacy|onetrust|usercentrics|didomi/i;
  const SEARCH = /search|suche|recherche|buscar|cerca|zoek/i;
  const MENU = /menu|menü|navigation|navbar|hamburger/i;

  const collapse = (text) => text.replace(/\s+/g, ' ').trim();
  const parentOf = (node) =>
    node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const referenced = (element, attribute) =>
    (element.getAttribute(attribute) ?? '').split(/\s+/).filter(Boolean)
      .map((id) => element.getRootNode().getElementById?.(id)).filter(Boolean);

  const nameOf = (element) => {
    const labels = referenced(element, 'aria-labelledby').concat([...(element.labels ?? [])]);
    const texts = [
      element.getAttribute('aria-label'),
      ...labels.map((label) => label.innerText),
      element.matches('select, textarea, input') ? null : element.innerText,
      element.matches('input[type=button]') ? element.value : null,
      element.getAttribute('placeholder'),
      element.getAttribute('title'),
      element.querySelector('[alt], [aria-label], title')?.getAttribute('alt'),
      element.querySelector('[aria-label]')?.getAttribute('aria-label'),
      element.querySelector('title')?.textContent,
    ];
    const text = texts.map((text) => collapse(text ?? '')).find((text) => text !== '');
    return shorten(text ?? '', NAME_CHARS);
  };

  // Ids and classes of an element and its closest ancestors.
  const marks = (element, levels) => {
    let text = '';
    for (let at = element, level = 0; at && level < levels; at = parentOf(at), level++) {
      const words = [at.id, at.getAttribute('class'), at.getAttribute('role'), at.localName];
      text += ` ${words.filter(Boolean).join(' ')}`;
    }
    return text;
  };

  const isSubmit = (element) =>
    element instanceof HTMLButtonElement && element.type === 'submit' &&
    element.form !== null && element.form.method !== 'dialog' && element.formMethod !== 'dialog';

  const isScript = (href) => href.toLowerCase().startsWith('javascript:');
  const here = location.href.split('#')[0];
  // Whether a link stays in its document.
  const staysHere = (link) => {
    if (link.hasAttribute('download') || (link.target && link.target !== '_self')) return false;
    const href = link.getAttribute('href').trim();
    return href.startsWith('#') || isScript(href) ||
      (link.href.includes('#') && link.href.split('#')[0] === here);
  };

  const kindOf = (element, name) => {
    const role = element.getAttribute('role') ?? '';
    const type = element instanceof HTMLInputElement ? element.type : '';
    const popup = element.getAttribute('aria-haspopup') ?? 'false';
    const attributes = ['id', 'class', 'name'].map((name) => element.getAttribute(name) ?? '');
    const own = `${name} ${attributes.join(' ')}`;
    const isText = TEXT_TYPES.has(type) || element instanceof HTMLTextAreaElement ||
      (['searchbox', 'textbox'].includes(role) && element.isContentEditable);
    if (isText) {
      if (element.readOnly) return null;
      const isSearch = type === 'search' || role === 'searchbox' || SEARCH.test(own) ||
        element.closest('[role=search], search');
      return isSearch ? 'search' : 'field';
    }
    if (element instanceof HTMLSelectElement) return 'select';
    const isToggle = ['checkbox', 'radio'].includes(type) ||
      ['switch', 'checkbox', 'radio'].includes(role);
    if (isToggle) return 'toggle';
    if (CONSENT_AREA.test(marks(element, 8)) && !element.matches('a[href]')) return 'consent';
    if (role === 'tab') return 'tab';
    const href = element.matches('a[href]') ? element.getAttribute('href').trim() : '#';
    const opens = role === 'button' ||
      element.matches('[aria-expanded], [aria-haspopup], [data-toggle], [data-bs-toggle]');
    if (href.length > 1 && !isScript(href) && !opens) return 'anchor';
    if (popup === 'dialog') return 'dialog';
    if (MENU.test(own) || ['menu', 'true'].includes(popup) || role === 'menuitem') return 'menu';
    if (element.localName === 'summary' || element.hasAttribute('aria-expanded')) {
      return /nav|header/.test(marks(element, 4)) ? 'menu' : 'accordion';
    }
    return 'button';
  };

  const mayUse = (element) => {
    const isDisabled = element.matches(':disabled') ||
      element.closest('[aria-disabled="true"], [inert]');
    if (isDisabled) return false;
    if (element instanceof HTMLInputElement && SKIPPED_TYPES.has(element.type)) return false;
    if (isSubmit(element)) return false;
    const link = element.closest('a[href]');
    // A link that opens something in the page usually has a target for visitors without scripts.
    if (link && !staysHere(link)) {
      return link === element && link.matches('[aria-expanded], [aria-haspopup]') && !link.target &&
        !link.hasAttribute('download');
    }
    return true;
  };

  // Whether a part of the page covers the middle of the element. Elements outside the viewport are
  // tested when they have been scrolled into view.
  const isHit = (element, x, y) => {
    let hit = document.elementFromPoint(x, y);
    while (hit?.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    for (let at = hit; at; at = parentOf(at)) if (at === element) return true;
    return hit?.closest('label')?.control === element;
  };

  const controls = [];
  const found = [];
  for (const element of everyElement(SELECTOR)) {
    if (found.length >= MAX_CONTROLS) break;
    if (!mayUse(element)) continue;
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const {left, top, width, height} = element.getBoundingClientRect();
    if (width < 4 || height < 4) continue;
    const [x, y] = [left + width / 2, top + height / 2];
    // Not to be reached by scrolling.
    const [pageX, pageY] = [x + scrollX, y + scrollY];
    if (pageX < 0 || pageY < 0 || pageX > document.documentElement.scrollWidth) continue;
    const inViewport = x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
    if (inViewport && !isHit(element, x, y)) continue;
    const name = nameOf(element);
    if (RISKY.test(name)) continue;
    const kind = kindOf(element, name);
    if (kind === null) continue;
    const {selector, snippet, path} = describe(element);
    // Rows of a list and cards of a grid have controls at the same place of the same markup.
    const group = path.replace(/\d+,/g, '') + '|' + (element.getAttribute('class') ?? '');
    controls.push(element);
    found.push({
      kind, name, selector, snippet, path, group, inViewport, top: top + scrollY, left: left + scrollX,
    });
  }
  globalThis.plumblineControls = controls;
  return found;
})
