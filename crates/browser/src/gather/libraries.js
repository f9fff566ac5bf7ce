// Front-end libraries by the traces they leave. Shape: `Libraries` in the engine's facts.
//
// The only script here that runs in the page's own world, where those traces are. Anything it reads
// may be forged by the page: it only reads, and every access is guarded.
() => {
  // True if present, or its version if it has one.
  const detected = (mark, version) => mark && (version || true);

  // Display names, and where each library stores its version.
  const marks = {
    'jQuery': () => (globalThis.jQuery ?? $).fn.jquery,
    'jQuery UI': () => jQuery.ui.version,
    'jQuery Mobile': () => jQuery.mobile.version,
    'Bootstrap': () => globalThis.bootstrap?.Tooltip?.VERSION ?? jQuery.fn.tooltip.Constructor.VERSION,
    'Foundation': () => Foundation.Toggler && Foundation.version,
    'React': () => globalThis.React?.version ?? detected(document.querySelector('[data-reactroot]') ??
      elementWith('_reactRootContainer') ?? rootOf(/^__react(Container|Fiber)/)),
    'Next.js': () => detected(globalThis.__NEXT_DATA__?.buildId ?? globalThis.next?.version, globalThis.next?.version),
    'Preact': () => globalThis.preact?.version ?? detected(elementWith('__k') ?? elementWith('_component') ??
      elementWith('__preactattr_') ?? rootOf(/^_children$/)),
    'Vue': () => globalThis.Vue?.version ?? elementWith('__vue_app__')?.__vue_app__.version ?? detected(elementWith('__vue__')),
    'Nuxt.js': () => (globalThis.__NUXT__ || globalThis.$nuxt) && true,
    'Angular': () => document.querySelector('[ng-version]').getAttribute('ng-version'),
    'AngularJS': () => angular.version.full,
    'Ember.js': () => (globalThis.Ember ?? Em).VERSION,
    'Backbone': () => Backbone.VERSION,
    'Marionette': () => Marionette.VERSION,
    'Knockout': () => ko.version,
    'Lo-Dash': () => isLodash() && _.VERSION,
    'Underscore': () => !isLodash() && detected(_.tap, _.VERSION),
    'Moment.js': () => moment.version,
    'Moment Timezone': () => moment.tz.version,
    'Modernizr': () => Modernizr._version,
    'RequireJS': () => (globalThis.requirejs ?? require).version,
    'D3': () => detected(d3.select, d3.version),
    'Leaflet': () => L.marker && L.version,
    'Mapbox': () => (globalThis.mapboxgl ?? L.mapbox).version ?? L.mapbox.VERSION,
    'Google Maps': () => google.maps.version,
    'three.js': () => detected(THREE, THREE.REVISION),
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
    'Tween.js': () => detected(TWEEN.Easing, TWEEN.REVISION ?? TWEEN.VERSION),
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
    'Socket.IO': () => detected(io.sockets ?? io.Socket, io.version),
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
    'core-js': () => detected(globalThis['__core-js_shared__'] ?? globalThis.core,
      globalThis['__core-js_shared__']?.versions?.at?.(-1).version ?? globalThis.core?.version),
    'Riot': () => riot.version,
    'AMP': () => document.documentElement.matches('[amp], [⚡]') && (globalThis.AMP?.version ?? true),
    'Gatsby': () => document.getElementById('___gatsby') && true,
    'Create React App': () => detected(generatedRoot()),
    'Remix': () => globalThis.__remixContext && true,
    'WordPress': () => generator(/^WordPress ?([\d.]*)/) ?? detected(document.querySelector('link[rel="https://api.w.org/"], ' +
      'link[href*="wp-content/"], link[href*="wp-includes"], script[src*="wp-includes"]')),
    'WP Rocket': () => detected(document.querySelector('style#wpr-usedcss') ?? globalThis.RocketPreloadLinksConfig),
    'Drupal': () => generator(/^Drupal ?([\d.]*)/) ?? detected(globalThis.Drupal?.behaviors ??
      fileFrom(/\/sites\/(default|all)\/(themes|modules|files)/)),
    'Joomla': () => generator(/^Joomla/) ?? detected(globalThis.Joomla ?? fileFrom(/\/media\/jui\/js\/bootstrap\.min\.js/)),
    'TYPO3': () => generator(/^TYPO3/) ?? detected(fileFrom(/\/(typo3conf|typo3temp|fileadmin)/)),
    'October CMS': () => generator(/^October ?CMS/) ?? detected(fileFrom(/\/modules\/system\/assets\/(css|js)\/framework/)),
    'Wix': () => generator(/^Wix/) ?? detected(globalThis.wixPerformanceMeasurements?.info ?? globalThis.wixBiSession?.info),
    'Shopify': () => Shopify.shop && true,
    'Magento': () => detected(document.querySelector('script[type="text/x-magento-init"]') ??
      fileFrom(/\/static\/.*frontend\/.+\/requirejs\/require(\.min)?\.js/)),
    'Ezoic': () => __ez.template && true,
    'NitroPack': () => generator(/^NitroPack/),
    'Boq': () => WIZ_global_data && true,
    'Wiz': () => detected(document.__wizdispatcher),
    'Bento': () => detected(BENTO.push),
    'Fuse': () => detected(Fuse, Fuse.version),
    'YUI 2': () => detected(YAHOO.util, YAHOO.VERSION),
    'Qooxdoo': () => detected(qx.Bootstrap),
    'Vaadin': () => detected(vaadin.registerWidgetset),
    'Processing.js': () => detected(Processing.box, Processing.version),
    'InfoVis': () => detected($jit.PieChart, $jit.version),
    'CamanJS': () => detected(Caman, Caman.version?.release),
    'Popcorn.js': () => detected(Popcorn.Events, Popcorn.version),
    'CanJS': () => detected(can.Construct, can.VERSION),
    'Spine': () => detected(Spine.Controller, Spine.version),
    'Sammy': () => detected(Sammy.Application.curry, Sammy.VERSION),
    'AmplifyJS': () => detected(amplify.publish),
    'Sea.js': () => detected(seajs.use, seajs.version),
    'LABjs': () => detected($LAB.setOptions),
    'Head JS': () => detected(head.js),
    'yepnope': () => detected(yepnope.injectJs),
    'Visibility.js': () => detected(Visibility.every),
    'Marko': () => detected(document.querySelector('[data-marko-key], [data-marko]')),
    'Framer': () => detected(Framer.Layer, Framer.Version?.build),
    'SPF': () => detected(spf.init),
    'Guess.js': () => detected(__GUESS__.guess),
  };

  // Both define the same name, and only one of them has this property.
  const isLodash = () => _.templateSettings?.imports || _.assignIn;

  // A script of Create React App's build beside its empty root, or its text for browsers without
  // scripts.
  const generatedRoot = () => document.getElementById('root') &&
    (document.querySelector('script[src*="/static/js/main."]') ?? [...document.querySelectorAll('body > noscript')]
      .find(({textContent}) => textContent.includes('You need to enable JavaScript to run this app')));

  // The first script or style sheet with a matching URL.
  const fileFrom = (pattern) =>
    [...document.querySelectorAll('script, link')].find(({src, href}) => pattern.test(src) || pattern.test(href));

  const generator = (pattern) => {
    for (const meta of document.querySelectorAll('meta[name="generator"]')) {
      const match = pattern.exec(meta.content);
      if (match) return match[1] || true;
    }
    return null;
  };

  // The first element with this property.
  const elementWith = (property) => {
    for (const element of document.body.getElementsByTagName('*')) if (element[property]) return element;
    return document.body[property] ? document.body : undefined;
  };

  // The first element near the root with a property whose name starts like this; searching names is
  // slow.
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
      // Not present.
    }
  }
  return found;
}
