// Front-end libraries by the marks they leave. Shape: `Libraries` in the engine's facts.
//
// The only script here that runs in the page's own world, where those marks are. Whatever it reads
// may be the page's invention: it only reads, and every look is guarded.
() => {
  // Names as people know them, and where each keeps its version.
  const marks = {
    'jQuery': () => (globalThis.jQuery ?? $).fn.jquery,
    'jQuery UI': () => jQuery.ui.version,
    'jQuery Mobile': () => jQuery.mobile.version,
    'Bootstrap': () => globalThis.bootstrap?.Tooltip?.VERSION ?? jQuery.fn.tooltip.Constructor.VERSION,
    'Foundation': () => Foundation.Toggler && Foundation.version,
    'React': () => globalThis.React?.version ?? (rootOf(/^(_reactRootContainer|__react(Container|Fiber))/) && true),
    'Next.js': () => next.version,
    'Preact': () => globalThis.preact?.version ?? (rootOf(/^(__k|_children)$/) && true),
    'Vue': () => globalThis.Vue?.version ?? rootOf(/^__vue_app__$/)?.__vue_app__.version ?? (rootOf(/^__vue__$/) && true),
    'Nuxt.js': () => (globalThis.__NUXT__ || globalThis.$nuxt) && true,
    'Angular': () => document.querySelector('[ng-version]').getAttribute('ng-version'),
    'AngularJS': () => angular.version.full,
    'Ember.js': () => (globalThis.Ember ?? Em).VERSION,
    'Backbone': () => Backbone.VERSION,
    'Marionette': () => Marionette.VERSION,
    'Knockout': () => ko.version,
    'Lo-Dash': () => _.templateSettings.imports && _.VERSION,
    'Underscore': () => !_.templateSettings.imports && _.VERSION,
    'Moment.js': () => moment.version,
    'Moment Timezone': () => moment.tz.version,
    'Modernizr': () => Modernizr._version,
    'RequireJS': () => (globalThis.requirejs ?? require).version,
    'D3': () => d3.version,
    'Leaflet': () => L.marker && L.version,
    'Mapbox': () => (globalThis.mapboxgl ?? L.mapbox).version ?? L.mapbox.VERSION,
    'Google Maps': () => google.maps.version,
    'three.js': () => THREE.REVISION,
    'Pixi.js': () => PIXI.VERSION,
    'Fabric.js': () => fabric.version,
    'Paper.js': () => paper.version,
    'Raphaël': () => Raphael.version,
    'Two': () => Two.Version,
    'Matter.js': () => Matter.version,
    'CreateJS': () => createjs && true,
    'Highcharts': () => Highcharts.version,
    'FlotCharts': () => jQuery.plot.version,
    'DC.js': () => dc.version && dc.registerChart && dc.version,
    'GreenSock JS': () => globalThis.gsap?.version ?? TweenMax.version,
    'Tween.js': () => TWEEN.REVISION,
    'Velocity.js': () => (globalThis.Velocity ?? jQuery.Velocity).version && true,
    'ScrollMagic': () => ScrollMagic.version,
    'Isotope': () => (globalThis.Isotope ?? jQuery.fn.isotope) && true,
    'FlexSlider': () => jQuery.fn.flexslider && true,
    'Hammer.js': () => Hammer.VERSION,
    'FastClick': () => FastClick && true,
    'Handlebars': () => Handlebars.VERSION,
    'Mustache': () => Mustache.version,
    'Handsontable': () => Handsontable.version,
    'Numeral.js': () => numeral.version,
    'Socket.IO': () => io.version ?? (io.sockets && true),
    'Pusher': () => Pusher.VERSION,
    'Zepto.js': () => Zepto.fn && true,
    'Prototype': () => Prototype.Version,
    'Scriptaculous': () => Scriptaculous.Version,
    'MooTools': () => MooTools.version,
    'Dojo': () => dojo.version.toString(),
    'YUI 3': () => YUI.version,
    'Ext JS': () => Ext.versions?.core.version ?? Ext.version,
    'GWT': () => (globalThis.__gwt_activeModules ?? document.getElementById('__gwt_historyFrame')) && true,
    'Kendo UI': () => kendo.version,
    'Polymer': () => Polymer.version,
    'LitElement': () => globalThis.litElementVersions[0],
    'lit-html': () => globalThis.litHtmlVersions[0],
    'Ionic': () => (globalThis.ionic?.version ?? (document.querySelector('ion-app') && true)),
    'Material Design Lite': () => componentHandler.upgradeElement && true,
    'Closure Library': () => goog.provide && true,
    'Sugar': () => Sugar.VERSION,
    'SWFObject': () => swfobject && true,
    'WebFont Loader': () => WebFont.load && true,
    'boomerang.js': () => BOOMR.version,
    'core-js': () => globalThis['__core-js_shared__']?.versions?.at(-1).version ?? core.version,
    'Riot': () => riot.version,
    'AMP': () => document.documentElement.matches('[amp], [⚡]') && (globalThis.AMP?.version ?? true),
    'Gatsby': () => document.getElementById('___gatsby') && true,
    'Create React App': () => generatedRoot() && true,
    'Remix': () => globalThis.__remixContext && true,
    'WordPress': () => generator(/^WordPress ?([\d.]*)/) ?? (document.querySelector('link[href*="wp-content/"], link[href*="wp-includes"], script[src*="wp-includes"]') && true),
    'Drupal': () => generator(/^Drupal ?([\d.]*)/) ?? (globalThis.Drupal?.behaviors && true),
    'Joomla': () => generator(/^Joomla/) ?? (globalThis.Joomla && true),
    'TYPO3': () => generator(/^TYPO3/),
    'Wix': () => generator(/^Wix/),
    'Shopify': () => Shopify.shop && true,
    'Magento': () => document.querySelector('script[type="text/x-magento-init"]') && true,
    'Ezoic': () => __ez.template && true,
    'NitroPack': () => generator(/^NitroPack/),
    'Boq': () => WIZ_global_data && true,
  };

  // A script of Create React App's build beside its empty root.
  const generatedRoot = () => document.getElementById('root') &&
    document.querySelector('script[src*="/static/js/main."]');

  const generator = (pattern) => {
    for (const meta of document.querySelectorAll('meta[name="generator"]')) {
      const match = pattern.exec(meta.content);
      if (match) return match[1] || true;
    }
    return null;
  };

  // The first element near the root that carries a property of this name.
  const rootOf = (name) => {
    let left = 500;
    for (const element of document.body.querySelectorAll('*')) {
      if (Object.getOwnPropertyNames(element).some((own) => name.test(own))) return element;
      if (--left === 0) return null;
    }
    return null;
  };

  const found = [];
  for (const [name, look] of Object.entries(marks)) {
    try {
      const version = look();
      if (!version) continue;
      const isText = typeof version === 'string' || typeof version === 'number';
      found.push({name, version: isText ? String(version).slice(0, 50) : null});
    } catch {
      // Not there.
    }
  }
  return found;
}
