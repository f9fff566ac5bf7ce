// Front-end libraries by the marks they leave. Shape: `Libraries` in the engine's facts.
//
// The only script here that runs in the page's own world, where those marks are. Whatever it reads
// may be the page's invention: it only reads, and every look is guarded.
() => {
  // What is there, with its version if it tells one.
  const known = (mark, version) => mark && (version || true);

  // Names as people know them, and where each keeps its version.
  const marks = {
    'jQuery': () => (globalThis.jQuery ?? $).fn.jquery,
    'jQuery UI': () => jQuery.ui.version,
    'jQuery Mobile': () => jQuery.mobile.version,
    'Bootstrap': () => globalThis.bootstrap?.Tooltip?.VERSION ?? jQuery.fn.tooltip.Constructor.VERSION,
    'Foundation': () => Foundation.Toggler && Foundation.version,
    'React': () => globalThis.React?.version ?? known(document.querySelector('[data-reactroot]') ??
      carrierOf('_reactRootContainer') ?? rootOf(/^__react(Container|Fiber)/)),
    'Next.js': () => known(globalThis.__NEXT_DATA__?.buildId ?? globalThis.next?.version, globalThis.next?.version),
    'Preact': () => globalThis.preact?.version ?? known(carrierOf('__k') ?? carrierOf('_component') ??
      carrierOf('__preactattr_') ?? rootOf(/^_children$/)),
    'Vue': () => globalThis.Vue?.version ?? carrierOf('__vue_app__')?.__vue_app__.version ?? known(carrierOf('__vue__')),
    'Nuxt.js': () => (globalThis.__NUXT__ || globalThis.$nuxt) && true,
    'Angular': () => document.querySelector('[ng-version]').getAttribute('ng-version'),
    'AngularJS': () => angular.version.full,
    'Ember.js': () => (globalThis.Ember ?? Em).VERSION,
    'Backbone': () => Backbone.VERSION,
    'Marionette': () => Marionette.VERSION,
    'Knockout': () => ko.version,
    'Lo-Dash': () => isLodash() && _.VERSION,
    'Underscore': () => !isLodash() && known(_.tap, _.VERSION),
    'Moment.js': () => moment.version,
    'Moment Timezone': () => moment.tz.version,
    'Modernizr': () => Modernizr._version,
    'RequireJS': () => (globalThis.requirejs ?? require).version,
    'D3': () => known(d3.select, d3.version),
    'Leaflet': () => L.marker && L.version,
    'Mapbox': () => (globalThis.mapboxgl ?? L.mapbox).version ?? L.mapbox.VERSION,
    'Google Maps': () => google.maps.version,
    'three.js': () => known(THREE, THREE.REVISION),
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
    'Tween.js': () => known(TWEEN.Easing, TWEEN.REVISION ?? TWEEN.VERSION),
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
    'Socket.IO': () => known(io.sockets ?? io.Socket, io.version),
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
    'core-js': () => known(globalThis['__core-js_shared__'] ?? globalThis.core,
      globalThis['__core-js_shared__']?.versions?.at?.(-1).version ?? globalThis.core?.version),
    'Riot': () => riot.version,
    'AMP': () => document.documentElement.matches('[amp], [⚡]') && (globalThis.AMP?.version ?? true),
    'Gatsby': () => document.getElementById('___gatsby') && true,
    'Create React App': () => known(generatedRoot()),
    'Remix': () => globalThis.__remixContext && true,
    'WordPress': () => generator(/^WordPress ?([\d.]*)/) ?? known(document.querySelector('link[rel="https://api.w.org/"], ' +
      'link[href*="wp-content/"], link[href*="wp-includes"], script[src*="wp-includes"]')),
    'WP Rocket': () => known(document.querySelector('style#wpr-usedcss') ?? globalThis.RocketPreloadLinksConfig),
    'Drupal': () => generator(/^Drupal ?([\d.]*)/) ?? known(globalThis.Drupal?.behaviors ??
      loadedFrom(/\/sites\/(default|all)\/(themes|modules|files)/)),
    'Joomla': () => generator(/^Joomla/) ?? known(globalThis.Joomla ?? loadedFrom(/\/media\/jui\/js\/bootstrap\.min\.js/)),
    'TYPO3': () => generator(/^TYPO3/) ?? known(loadedFrom(/\/(typo3conf|typo3temp|fileadmin)/)),
    'October CMS': () => generator(/^October ?CMS/) ?? known(loadedFrom(/\/modules\/system\/assets\/(css|js)\/framework/)),
    'Wix': () => generator(/^Wix/) ?? known(globalThis.wixPerformanceMeasurements?.info ?? globalThis.wixBiSession?.info),
    'Shopify': () => Shopify.shop && true,
    'Magento': () => known(document.querySelector('script[type="text/x-magento-init"]') ??
      loadedFrom(/\/static\/.*frontend\/.+\/requirejs\/require(\.min)?\.js/)),
    'Ezoic': () => __ez.template && true,
    'NitroPack': () => generator(/^NitroPack/),
    'Boq': () => WIZ_global_data && true,
    'Wiz': () => known(document.__wizdispatcher),
    'Bento': () => known(BENTO.push),
    'Fuse': () => known(Fuse, Fuse.version),
    'YUI 2': () => known(YAHOO.util, YAHOO.VERSION),
    'Qooxdoo': () => known(qx.Bootstrap),
    'Vaadin': () => known(vaadin.registerWidgetset),
    'Processing.js': () => known(Processing.box, Processing.version),
    'InfoVis': () => known($jit.PieChart, $jit.version),
    'CamanJS': () => known(Caman, Caman.version?.release),
    'Popcorn.js': () => known(Popcorn.Events, Popcorn.version),
    'CanJS': () => known(can.Construct, can.VERSION),
    'Spine': () => known(Spine.Controller, Spine.version),
    'Sammy': () => known(Sammy.Application.curry, Sammy.VERSION),
    'AmplifyJS': () => known(amplify.publish),
    'Sea.js': () => known(seajs.use, seajs.version),
    'LABjs': () => known($LAB.setOptions),
    'Head JS': () => known(head.js),
    'yepnope': () => known(yepnope.injectJs),
    'Visibility.js': () => known(Visibility.every),
    'Marko': () => known(document.querySelector('[data-marko-key], [data-marko]')),
    'Framer': () => known(Framer.Layer, Framer.Version?.build),
    'SPF': () => known(spf.init),
    'Guess.js': () => known(__GUESS__.guess),
  };

  // Both answer to the same name, and only one of them has this.
  const isLodash = () => _.templateSettings?.imports || _.assignIn;

  // A script of Create React App's build beside its empty root, or its words for those without scripts.
  const generatedRoot = () => document.getElementById('root') &&
    (document.querySelector('script[src*="/static/js/main."]') ?? [...document.querySelectorAll('body > noscript')]
      .find(({textContent}) => textContent.includes('You need to enable JavaScript to run this app')));

  // The first script or style sheet from such an address.
  const loadedFrom = (pattern) =>
    [...document.querySelectorAll('script, link')].find(({src, href}) => pattern.test(src) || pattern.test(href));

  const generator = (pattern) => {
    for (const meta of document.querySelectorAll('meta[name="generator"]')) {
      const match = pattern.exec(meta.content);
      if (match) return match[1] || true;
    }
    return null;
  };

  // The first element that carries this property.
  const carrierOf = (property) => {
    for (const element of document.body.getElementsByTagName('*')) if (element[property]) return element;
    return document.body[property] ? document.body : undefined;
  };

  // The first element near the root that carries a property whose name begins like this; searching names is slow.
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
