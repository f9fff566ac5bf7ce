//! Polyfills with the core-js modules that each needs, and the minified sizes of the modules.
//! Figures of Lighthouse 13.5 (legacy-javascript 0.0.1, measured there on core-js 3).

/// Total size of all modules, the upper limit of an estimate.
pub(crate) const MAX_BYTES: u32 = 155835;

/// Size of each module in bytes.
pub(crate) const MODULE_BYTES: [u32; 254] = [
    26070, 498, 282, 294, 281, 467, 161, 236, 229, 765, 546, 339, 1608, 723, 729, 1545, 438, 214,
    657, 111, 759, 537, 209, 281, 685, 217, 757, 631, 293, 182, 475, 79, 407, 140, 366, 792, 269,
    222, 158, 280, 188, 137, 158, 105, 189, 543, 160, 742, 1436, 88, 904, 146, 314, 375, 183, 1083,
    195, 503, 269, 208, 334, 350, 460, 568, 229, 1155, 334, 266, 30, 120, 309, 370, 358, 1952,
    1638, 304, 153, 274, 1288, 192, 543, 74, 144, 137, 33, 336, 457, 2122, 535, 711, 1323, 117,
    1961, 244, 557, 318, 119, 124, 108, 144, 96, 133, 441, 210, 1627, 1956, 693, 1426, 863, 637,
    301, 51, 708, 583, 119, 600, 221, 370, 728, 1085, 552, 629, 125, 1746, 97, 441, 543, 2756, 371,
    447, 548, 243, 266, 217, 99, 440, 183, 546, 137, 464, 207, 983, 503, 237, 382, 249, 675, 402,
    254, 223, 164, 214, 191, 831, 218, 202, 232, 124, 249, 160, 251, 217, 717, 78, 561, 1627, 256,
    386, 225, 432, 499, 394, 364, 445, 634, 667, 177, 346, 470, 663, 142, 588, 414, 617, 1559, 380,
    2520, 1040, 417, 289, 238, 220, 214, 303, 163, 141, 510, 397, 137, 137, 133, 133, 390, 266,
    137, 183, 215, 191, 485, 328, 575, 799, 533, 148, 215, 589, 589, 130, 362, 562, 471, 179, 186,
    1266, 1456, 521, 1536, 427, 444, 406, 912, 150, 283, 144, 485, 470, 205, 1268, 796, 658, 306,
    3751, 814, 146, 2328, 1226, 922, 237, 206, 198, 250, 283, 60, 3000,
];

pub(crate) struct Polyfill {
    pub(crate) name: &'static str,
    /// Name of its module in core-js 3.
    pub(crate) module: &'static str,
    /// Required modules, as indices into [`MODULE_BYTES`].
    pub(crate) needs: &'static [u8],
}

/// Polyfills that can only be detected by module name in a source map. The size of the second is
/// not counted.
pub(crate) const MAPPED_POLYFILLS: &[Polyfill] = &[
    Polyfill {
        name: "focus-visible",
        module: "focus-visible",
        needs: &[253],
    },
    Polyfill {
        name: "Error.prototype.cause",
        module: "es.error.cause",
        needs: &[],
    },
];

pub(crate) const POLYFILLS: &[Polyfill] = &[
    Polyfill {
        name: "Array.prototype.at",
        module: "es.array.at",
        needs: &[0, 5, 69, 105, 106, 116, 164],
    },
    Polyfill {
        name: "Array.prototype.concat",
        module: "es.array.concat",
        needs: &[0, 16, 21, 22, 26, 34, 40, 76, 78, 155, 165],
    },
    Polyfill {
        name: "Array.prototype.copyWithin",
        module: "es.array.copy-within",
        needs: &[0, 5, 9, 37, 69, 105, 106, 116, 166],
    },
    Polyfill {
        name: "Array.prototype.every",
        module: "es.array.every",
        needs: &[0, 15, 17, 21, 22, 26, 53, 59, 76, 78, 155, 167],
    },
    Polyfill {
        name: "Array.prototype.fill",
        module: "es.array.fill",
        needs: &[0, 5, 10, 69, 105, 106, 116, 168],
    },
    Polyfill {
        name: "Array.prototype.filter",
        module: "es.array.filter",
        needs: &[0, 15, 16, 21, 22, 26, 53, 59, 76, 78, 155, 169],
    },
    Polyfill {
        name: "Array.prototype.find",
        module: "es.array.find",
        needs: &[
            0, 5, 15, 21, 22, 26, 53, 59, 69, 76, 78, 105, 106, 116, 155, 173,
        ],
    },
    Polyfill {
        name: "Array.prototype.findIndex",
        module: "es.array.find-index",
        needs: &[
            0, 5, 15, 21, 22, 26, 53, 59, 69, 76, 78, 105, 106, 116, 155, 170,
        ],
    },
    Polyfill {
        name: "Array.prototype.findLast",
        module: "es.array.find-last",
        needs: &[0, 5, 14, 53, 59, 69, 105, 106, 116, 172],
    },
    Polyfill {
        name: "Array.prototype.findLastIndex",
        module: "es.array.find-last-index",
        needs: &[0, 5, 14, 53, 59, 69, 105, 106, 116, 171],
    },
    Polyfill {
        name: "Array.prototype.flat",
        module: "es.array.flat",
        needs: &[0, 21, 22, 26, 40, 50, 53, 59, 76, 78, 155, 175],
    },
    Polyfill {
        name: "Array.prototype.flatMap",
        module: "es.array.flat-map",
        needs: &[0, 21, 22, 26, 40, 50, 53, 59, 76, 78, 155, 174],
    },
    Polyfill {
        name: "Array.prototype.forEach",
        module: "es.array.for-each",
        needs: &[0, 11, 15, 17, 21, 22, 26, 53, 59, 76, 78, 155, 176],
    },
    Polyfill {
        name: "Array.from",
        module: "es.array.from",
        needs: &[0, 12, 23, 24, 26, 34, 53, 59, 62, 63, 75, 78, 88, 155, 177],
    },
    Polyfill {
        name: "Array.prototype.includes",
        module: "es.array.includes",
        needs: &[0, 5, 69, 105, 106, 116, 178],
    },
    Polyfill {
        name: "Array.prototype.indexOf",
        module: "es.array.index-of",
        needs: &[0, 17, 59, 179],
    },
    Polyfill {
        name: "Array.isArray",
        module: "es.array.is-array",
        needs: &[0, 76, 180],
    },
    Polyfill {
        name: "Array.prototype.join",
        module: "es.array.join",
        needs: &[0, 17, 181],
    },
    Polyfill {
        name: "Array.prototype.map",
        module: "es.array.map",
        needs: &[0, 15, 16, 21, 22, 26, 53, 59, 76, 78, 155, 182],
    },
    Polyfill {
        name: "Array.of",
        module: "es.array.of",
        needs: &[0, 26, 34, 78, 155, 183],
    },
    Polyfill {
        name: "Array.prototype.slice",
        module: "es.array.slice",
        needs: &[0, 16, 19, 26, 34, 76, 78, 155, 184],
    },
    Polyfill {
        name: "Array.prototype.some",
        module: "es.array.some",
        needs: &[0, 15, 17, 21, 22, 26, 53, 59, 76, 78, 155, 185],
    },
    Polyfill {
        name: "Array.prototype.sort",
        module: "es.array.sort",
        needs: &[0, 17, 19, 20, 26, 37, 42, 43, 46, 155, 156, 186],
    },
    Polyfill {
        name: "Array.prototype.unshift",
        module: "es.array.unshift",
        needs: &[0, 18, 37, 40, 76, 187],
    },
    Polyfill {
        name: "Math.acosh",
        module: "es.math.acosh",
        needs: &[0, 97, 188],
    },
    Polyfill {
        name: "Math.asinh",
        module: "es.math.asinh",
        needs: &[0, 189],
    },
    Polyfill {
        name: "Math.atanh",
        module: "es.math.atanh",
        needs: &[0, 190],
    },
    Polyfill {
        name: "Math.cbrt",
        module: "es.math.cbrt",
        needs: &[0, 100, 191],
    },
    Polyfill {
        name: "Math.clz32",
        module: "es.math.clz32",
        needs: &[0, 192],
    },
    Polyfill {
        name: "Math.cosh",
        module: "es.math.cosh",
        needs: &[0, 93, 193],
    },
    Polyfill {
        name: "Math.expm1",
        module: "es.math.expm1",
        needs: &[0, 93, 194],
    },
    Polyfill {
        name: "Math.fround",
        module: "es.math.fround",
        needs: &[0, 94, 95, 99, 100, 195],
    },
    Polyfill {
        name: "Math.hypot",
        module: "es.math.hypot",
        needs: &[0, 196],
    },
    Polyfill {
        name: "Math.imul",
        module: "es.math.imul",
        needs: &[0, 197],
    },
    Polyfill {
        name: "Math.log10",
        module: "es.math.log10",
        needs: &[0, 96, 198],
    },
    Polyfill {
        name: "Math.log1p",
        module: "es.math.log1p",
        needs: &[0, 97, 199],
    },
    Polyfill {
        name: "Math.log2",
        module: "es.math.log2",
        needs: &[0, 98, 200],
    },
    Polyfill {
        name: "Math.sign",
        module: "es.math.sign",
        needs: &[0, 100, 201],
    },
    Polyfill {
        name: "Math.sinh",
        module: "es.math.sinh",
        needs: &[0, 93, 202],
    },
    Polyfill {
        name: "Math.tanh",
        module: "es.math.tanh",
        needs: &[0, 93, 203],
    },
    Polyfill {
        name: "Math.trunc",
        module: "es.math.trunc",
        needs: &[0, 204],
    },
    Polyfill {
        name: "Object.assign",
        module: "es.object.assign",
        needs: &[0, 104, 116, 205],
    },
    Polyfill {
        name: "Object.create",
        module: "es.object.create",
        needs: &[0, 69, 105, 106, 116, 206],
    },
    Polyfill {
        name: "Object.entries",
        module: "es.object.entries",
        needs: &[0, 29, 112, 116, 119, 207],
    },
    Polyfill {
        name: "Object.freeze",
        module: "es.object.freeze",
        needs: &[0, 8, 19, 51, 73, 109, 113, 208],
    },
    Polyfill {
        name: "Object.fromEntries",
        module: "es.object.from-entries",
        needs: &[0, 26, 34, 53, 59, 62, 63, 75, 87, 88, 155, 209],
    },
    Polyfill {
        name: "Object.getOwnPropertyDescriptor",
        module: "es.object.get-own-property-descriptor",
        needs: &[0, 210],
    },
    Polyfill {
        name: "Object.getOwnPropertyDescriptors",
        module: "es.object.get-own-property-descriptors",
        needs: &[0, 34, 211],
    },
    Polyfill {
        name: "Object.getPrototypeOf",
        module: "es.object.get-prototype-of",
        needs: &[0, 29, 112, 212],
    },
    Polyfill {
        name: "Object.hasOwn",
        module: "es.object.has-own",
        needs: &[0, 213],
    },
    Polyfill {
        name: "Object.is",
        module: "es.object.is",
        needs: &[0, 134, 217],
    },
    Polyfill {
        name: "Object.isExtensible",
        module: "es.object.is-extensible",
        needs: &[0, 8, 113, 214],
    },
    Polyfill {
        name: "Object.isFrozen",
        module: "es.object.is-frozen",
        needs: &[0, 8, 215],
    },
    Polyfill {
        name: "Object.isSealed",
        module: "es.object.is-sealed",
        needs: &[0, 8, 216],
    },
    Polyfill {
        name: "Object.keys",
        module: "es.object.keys",
        needs: &[0, 116, 218],
    },
    Polyfill {
        name: "Object.preventExtensions",
        module: "es.object.prevent-extensions",
        needs: &[0, 8, 19, 51, 73, 109, 113, 219],
    },
    Polyfill {
        name: "Object.seal",
        module: "es.object.seal",
        needs: &[0, 8, 19, 51, 73, 109, 113, 220],
    },
    Polyfill {
        name: "Object.setPrototypeOf",
        module: "es.object.set-prototype-of",
        needs: &[0, 4, 58, 83, 118, 221],
    },
    Polyfill {
        name: "Object.values",
        module: "es.object.values",
        needs: &[0, 29, 112, 116, 119, 222],
    },
    Polyfill {
        name: "Promise.any",
        module: "es.promise.any",
        needs: &[
            0, 24, 26, 47, 53, 59, 62, 63, 75, 87, 88, 102, 122, 123, 124, 125, 155, 224,
        ],
    },
    Polyfill {
        name: "Reflect.apply",
        module: "es.reflect.apply",
        needs: &[0, 52, 225],
    },
    Polyfill {
        name: "Reflect.construct",
        module: "es.reflect.construct",
        needs: &[0, 3, 19, 26, 52, 55, 69, 78, 105, 106, 116, 155, 226],
    },
    Polyfill {
        name: "Reflect.deleteProperty",
        module: "es.reflect.delete-property",
        needs: &[0, 227],
    },
    Polyfill {
        name: "Reflect.get",
        module: "es.reflect.get",
        needs: &[0, 29, 79, 112, 230],
    },
    Polyfill {
        name: "Reflect.getOwnPropertyDescriptor",
        module: "es.reflect.get-own-property-descriptor",
        needs: &[0, 228],
    },
    Polyfill {
        name: "Reflect.getPrototypeOf",
        module: "es.reflect.get-prototype-of",
        needs: &[0, 29, 112, 229],
    },
    Polyfill {
        name: "Reflect.has",
        module: "es.reflect.has",
        needs: &[0, 231],
    },
    Polyfill {
        name: "Reflect.isExtensible",
        module: "es.reflect.is-extensible",
        needs: &[0, 8, 113, 232],
    },
    Polyfill {
        name: "Reflect.ownKeys",
        module: "es.reflect.own-keys",
        needs: &[0, 233],
    },
    Polyfill {
        name: "Reflect.preventExtensions",
        module: "es.reflect.prevent-extensions",
        needs: &[0, 51, 234],
    },
    Polyfill {
        name: "Reflect.setPrototypeOf",
        module: "es.reflect.set-prototype-of",
        needs: &[0, 4, 58, 83, 118, 235],
    },
    Polyfill {
        name: "String.prototype.codePointAt",
        module: "es.string.code-point-at",
        needs: &[0, 26, 141, 155, 156, 236],
    },
    Polyfill {
        name: "String.prototype.endsWith",
        module: "es.string.ends-with",
        needs: &[0, 26, 28, 59, 85, 103, 155, 156, 237],
    },
    Polyfill {
        name: "String.fromCodePoint",
        module: "es.string.from-code-point",
        needs: &[0, 238],
    },
    Polyfill {
        name: "String.prototype.includes",
        module: "es.string.includes",
        needs: &[0, 26, 28, 85, 103, 155, 156, 239],
    },
    Polyfill {
        name: "String.prototype.matchAll",
        module: "es.string.match-all",
        needs: &[
            0, 3, 6, 26, 29, 31, 59, 69, 78, 85, 89, 90, 105, 106, 112, 116, 126, 127, 128, 129,
            130, 131, 132, 135, 139, 141, 155, 156, 241,
        ],
    },
    Polyfill {
        name: "String.raw",
        module: "es.string.raw",
        needs: &[0, 26, 155, 156, 242],
    },
    Polyfill {
        name: "String.prototype.repeat",
        module: "es.string.repeat",
        needs: &[0, 26, 142, 155, 156, 243],
    },
    Polyfill {
        name: "String.prototype.replaceAll",
        module: "es.string.replace-all",
        needs: &[0, 26, 65, 85, 128, 129, 155, 156, 244],
    },
    Polyfill {
        name: "String.prototype.startsWith",
        module: "es.string.starts-with",
        needs: &[0, 26, 28, 59, 85, 103, 155, 156, 245],
    },
    Polyfill {
        name: "String.prototype.substr",
        module: "es.string.substr",
        needs: &[0, 26, 155, 156, 246],
    },
    Polyfill {
        name: "String.prototype.trim",
        module: "es.string.trim",
        needs: &[0, 26, 144, 146, 155, 156, 163, 251],
    },
    Polyfill {
        name: "String.prototype.trimEnd",
        module: "es.string.trim-end",
        needs: &[0, 26, 143, 144, 146, 155, 156, 163, 247, 249],
    },
    Polyfill {
        name: "String.prototype.trimStart",
        module: "es.string.trim-start",
        needs: &[0, 26, 144, 145, 146, 155, 156, 163, 248, 250],
    },
    Polyfill {
        name: "String.prototype.link",
        module: "es.string.link",
        needs: &[0, 26, 30, 140, 155, 156, 240],
    },
    Polyfill {
        name: "Promise.allSettled",
        module: "esnext.promise.all-settled",
        needs: &[
            0, 24, 26, 47, 53, 59, 62, 63, 75, 87, 88, 102, 122, 123, 124, 125, 155, 223, 252,
        ],
    },
];
