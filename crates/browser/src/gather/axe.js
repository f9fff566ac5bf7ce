// Runs axe-core, which must be defined in this world already, with the rules and limits of
// Lighthouse 13.5 (core/gather/gatherers/accessibility.js). Shape: `Axe` in the engine's facts.
async ({describe, shorten}) => {
  // More of the same adds no information; `nodeCount` is the total.
  const VIOLATIONS_PER_RULE = 200;
  const UNDECIDED_PER_RULE = 20;
  const RELATED_PER_NODE = 3;
  const SUMMARY_CHARS = 1000;
  const IMPACTS = [null, 'minor', 'moderate', 'serious', 'critical'];

  const on = [
    'accesskeys', 'aria-allowed-role', 'aria-conditional-attr', 'aria-deprecated-role',
    'aria-dialog-name', 'aria-prohibited-attr', 'aria-text', 'aria-treeitem-name',
    'autocomplete-valid', 'empty-heading', 'heading-order', 'html-xml-lang-mismatch',
    'identical-links-same-purpose', 'image-redundant-alt', 'input-button-name',
    'label-content-name-mismatch', 'landmark-one-main', 'link-in-text-block', 'meta-viewport',
    'presentation-role-conflict', 'select-name', 'skip-link', 'svg-img-alt', 'tabindex',
    'table-duplicate-name', 'table-fake-caption', 'target-size', 'td-has-header',
  ];
  const off = [
    'area-alt', 'aria-braille-equivalent', 'aria-roledescription', 'aria-tab-name',
    'audio-caption', 'blink', 'duplicate-id', 'frame-focusable-content', 'frame-title-unique',
    'marquee', 'nested-interactive', 'no-autoplay-audio', 'role-img-alt',
    'scrollable-region-focusable', 'server-side-image-map', 'summary-name',
  ];
  const rules = Object.fromEntries([
    ...on.map((id) => [id, {enabled: true}]),
    ...off.map((id) => [id, {enabled: false}]),
  ]);

  const relatedOf = (node) => {
    const related = new Set();
    const checks = [...node.any, ...node.all, ...node.none]
      .sort((a, b) => IMPACTS.indexOf(b.impact) - IMPACTS.indexOf(a.impact));
    for (const {element} of checks.flatMap((check) => check.relatedNodes ?? [])) {
      if (element && element !== node.element) related.add(element);
      if (related.size === RELATED_PER_NODE) break;
    }
    return [...related].map(describe);
  };

  const result = (limit) => (rule) => ({
    id: rule.id,
    impact: rule.impact,
    error: rule.error instanceof Error ? rule.error.message || 'unknown' : undefined,
    nodeCount: rule.nodes.length,
    nodes: rule.nodes.slice(0, limit).filter((node) => node.element).map((node) => ({
      node: describe(node.element),
      failureSummary: shorten(node.failureSummary ?? '', SUMMARY_CHARS),
      relatedNodes: relatedOf(node),
    })),
  });

  // The screenshot has been requested and needs a frame, which would otherwise wait until all rules
  // have run.
  const FRAME_MS = 100;
  await Promise.race([
    new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
    new Promise((resolve) => setTimeout(resolve, FRAME_MS)),
  ]);

  const scrolled = [scrollX, scrollY];
  try {
    axe.configure({branding: {application: 'plumbline'}, noHtml: true});
    const results = await axe.run(document, {
      elementRef: true,
      // Elements are described below; axe's own selectors take long to compute.
      selectors: false,
      runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa']},
      resultTypes: ['violations', 'inapplicable'],
      rules,
      // Frames have no axe-core of ours. Querying them takes half a second and finds nothing more.
      iframes: false,
    });
    // axe scrolls; positions are relative to the top of the page.
    document.documentElement.scrollTop = 0;
    return {
      version: results.testEngine.version,
      violations: results.violations.map(result(VIOLATIONS_PER_RULE)),
      incomplete: results.incomplete.map(result(UNDECIDED_PER_RULE)),
      notApplicable: results.inapplicable.map((rule) => rule.id),
      passes: results.passes.map((rule) => rule.id),
    };
  } finally {
    scrollTo(...scrolled);
  }
}
