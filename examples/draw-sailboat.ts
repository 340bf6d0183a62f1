import { encode } from 'fast-png'
import { fill, HEIGHT, WIDTH, type Outline, type Paint, type Point, type Rgb, type Shape } from './fill-shape.ts'

const HORIZON = 206
const WATERLINE = 276
const SUN: Point = [92, 96]
/** How long a reflection is, as a share of what it reflects. */
const REFLECTED = 0.36
const GOLDEN_RATIO = 0.618_033_988_75

const rgb = (red: number, green: number, blue: number): Rgb => [red, green, blue]
const CREAM = rgb(255, 250, 238)
const NAVY = rgb(27, 42, 73)
const WOOD = rgb(150, 92, 48)
const ZENITH = rgb(44, 112, 190)
const MID_SKY = rgb(120, 184, 226)
const HAZE = rgb(250, 222, 184)
const SUNLIGHT = rgb(255, 236, 190)
const FAR_SEA = rgb(64, 152, 186)
const NEAR_SEA = rgb(10, 66, 118)

/** The colours a boat can have, by the word a user says for them; boat paints rather than CSS values. */
export const COLOURS = Object.freeze({
  white: rgb(250, 250, 247),
  black: rgb(38, 40, 46),
  grey: rgb(136, 142, 150),
  gray: rgb(136, 142, 150),
  silver: rgb(194, 199, 206),
  red: rgb(208, 32, 40),
  crimson: rgb(164, 16, 48),
  orange: rgb(240, 124, 24),
  gold: rgb(222, 170, 44),
  yellow: rgb(248, 208, 40),
  green: rgb(30, 138, 72),
  teal: rgb(16, 128, 128),
  turquoise: rgb(56, 200, 190),
  blue: rgb(32, 76, 190),
  navy: rgb(24, 36, 92),
  purple: rgb(112, 48, 150),
  violet: rgb(138, 84, 206),
  pink: rgb(240, 120, 170),
  brown: rgb(116, 70, 40),
  beige: rgb(226, 206, 170)
})
/** A word of `COLOURS`, in lower case. */
export type ColourName = keyof typeof COLOURS

function isColourName(word: string): word is ColourName {
  return Object.hasOwn(COLOURS, word)
}

/** Words before a colour that is not wished for: "make the red boat blue", "from red to blue", "blue, not green". */
const UNWISHED = ['the', 'from', 'not']

/** The first colour that `text` wishes for, as a word of its own, in any case; else the first that it names. */
export function colourIn(text: string): ColourName | undefined {
  let named: ColourName | undefined
  let before = ''
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{M}\p{N}_]+/gu)) {
    if (isColourName(word)) {
      if (!UNWISHED.includes(before)) return word
      named ??= word
    }
    before = word
  }
  return named
}

/**
 * Draws a sailboat on the ocean as a PNG of 480 by 360 pixels, 8-bit RGB; the same colour gives the same bytes.
 * `colour` paints the hull, the jib and the pennant, and is white when left out.
 */
export function drawSailboat(options: { colour?: ColourName | undefined } = {}): Uint8Array {
  const boat = boatShapes(COLOURS[options.colour ?? 'white'])
  const scene = [...skyShapes(), ...seaShapes(), ...boat.map(reflection), ...boat, ...foamShapes()]
  const canvas = new Uint8ClampedArray(WIDTH * HEIGHT * 3)
  for (const shape of scene) fill(canvas, shape)
  return encode({ width: WIDTH, height: HEIGHT, channels: 3, depth: 8, data: canvas })
}

function skyShapes(): Shape[] {
  const cloud = (x: number, y: number, size: number): Shape[] =>
    [
      [-1.5, 0.1, 0.8, 0.32],
      [-0.6, -0.2, 0.9, 0.6],
      [0.5, -0.1, 1.1, 0.5],
      [1.5, 0.15, 0.8, 0.28]
    ].map(([dx = 0, dy = 0, rx = 0, ry = 0]) => ({
      outline: ellipse(x + dx * size, y + dy * size, rx * size, ry * size),
      paint: (px, py) => mix(skyAt(px, py), CREAM, clamp(0.72 - (py - y) / size))
    }))
  return [
    { outline: rectangle(0, HORIZON), paint: skyAt },
    { outline: ellipse(...SUN, 25, 25), paint: flat(rgb(255, 244, 205)) },
    ...cloud(390, 78, 24),
    ...cloud(150, 152, 15),
    ...cloud(432, 160, 13)
  ]
}

function seaShapes(): Shape[] {
  const ripples = Array.from({ length: 130 }, (_, index): Shape => {
    const near = ((index + 0.5) / 130) ** 1.7
    const x = fraction(index * GOLDEN_RATIO) * WIDTH
    const y = HORIZON + 3 + near * (HEIGHT - HORIZON)
    const paint = flat(index % 3 === 0 ? rgb(8, 58, 104) : rgb(168, 222, 232))
    return { outline: ripple(x, y, 7 + near * 34, 0.5 + near * 2.2), paint, opacity: 0.32 }
  })
  const glints = Array.from({ length: 46 }, (_, index): Shape => {
    const near = (index / 46) ** 1.3
    const x = SUN[0] + (fraction(index * GOLDEN_RATIO) - 0.5) * (26 + near * 60)
    const outline = ripple(x, HORIZON + 2 + near * 118, 5 + near * 15, 0.7 + near * 1.2)
    return { outline, paint: flat(rgb(255, 232, 178)), opacity: 0.75 - near * 0.45 }
  })
  return [{ outline: rectangle(HORIZON, HEIGHT), paint: seaAt }, ...ripples, ...glints]
}

function boatShapes(colour: Rgb): Shape[] {
  return [...rigShapes(colour), ...hullShapes(colour)]
}

function rigShapes(colour: Rgb): Shape[] {
  const main = [...curve([132, 214], [198, 118], [244, 40]), ...curve([244, 216], [190, 225], [132, 214])]
  const jib = [
    ...curve([251, 62], [303, 142], [362, 221]),
    ...curve([362, 221], [310, 222], [264, 213]),
    ...curve([264, 213], [276, 140], [251, 62])
  ]
  const pennant = [...curve([243.5, 18], [232, 17], [219, 25]), ...curve([219, 25], [232, 29], [243.5, 33])]
  const cloth =
    (dye: Rgb, luff: number): Paint =>
    (x, y) =>
      mix(dye, NAVY, clamp(0.01 + Math.abs(x - luff) / 700 + (y - 40) / 4000))
  return [
    {
      outline: [
        [244, 42],
        [245.4, 42],
        [372, 229],
        [370.6, 229]
      ],
      paint: flat(WOOD)
    },
    { outline: main, paint: cloth(CREAM, 244) },
    {
      outline: [
        [243.5, 250],
        [243.5, 16],
        [246, 16],
        [248.5, 250]
      ],
      paint: flat(WOOD)
    },
    { outline: pennant, paint: flat(colour) },
    { outline: jib, paint: cloth(colour, 264) },
    {
      outline: [
        [128, 215],
        [246, 219],
        [246, 223],
        [128, 218]
      ],
      paint: flat(WOOD)
    }
  ]
}

function hullShapes(colour: Rgb): Shape[] {
  const [red, green, blue] = colour
  const stripe = 0.3 * red + 0.59 * green + 0.11 * blue > 150 ? NAVY : CREAM
  const sheer = curve([128, 236], [240, 258], [372, 228])
  const bow = curve([372, 228], [356, 258], [334, WATERLINE])
  const bottom = Array.from({ length: 41 }, (_, step): Point => {
    return [334 - step * 4.7, WATERLINE + 1.5 * Math.sin(step * 0.9)]
  })
  const planks: Paint = (x, y) =>
    mix(mix(colour, CREAM, clamp((250 - y) / 140)), NAVY, clamp((y - 252) / 75 + Math.max(0, x - 310) / 600))
  return [
    {
      outline: [
        [186, 250],
        [196, 233],
        [282, 231],
        [306, 250]
      ],
      paint: flat(CREAM)
    },
    ...[212, 236, 260].map((x): Shape => ({ outline: ellipse(x, 241, 6, 3.6), paint: flat(NAVY) })),
    { outline: [...sheer, ...bow, ...bottom, [136, 262]], paint: planks },
    { outline: [...sheer, ...curve([371, 231], [240, 265], [129, 240])], paint: flat(WOOD) },
    {
      outline: [...curve([132, 252], [240, 270], [357, 252]), ...curve([356, 254.5], [240, 273], [133, 254.5])],
      paint: flat(stripe)
    }
  ]
}

function foamShapes(): Shape[] {
  return Array.from({ length: 26 }, (_, index): Shape => {
    const along = index / 25
    const x = 118 + along * 226
    const y = WATERLINE + 1 + 2.5 * fraction(index * GOLDEN_RATIO)
    return { outline: ripple(x, y, 9 + 8 * fraction(index * 0.37), 1.7), paint: flat(CREAM), opacity: 0.6 }
  })
}

/** The shape upside down in the water: flattened, faint and broken by the ripples. */
function reflection({ outline, paint }: Shape): Shape {
  return {
    outline: outline.map(([x, y]) => [x, WATERLINE + (WATERLINE - y) * REFLECTED]),
    paint: (x, y) => paint(x, WATERLINE - (y - WATERLINE) / REFLECTED),
    opacity: 0.38,
    sway: y => (1 + Math.max(0, y - WATERLINE) * 0.07) * Math.sin(y * 1.1 + 3 * Math.sin(y * 0.23))
  }
}

function skyAt(x: number, y: number): Rgb {
  const height = clamp(y / HORIZON)
  const air = height < 0.6 ? mix(ZENITH, MID_SKY, height / 0.6) : mix(MID_SKY, HAZE, (height - 0.6) / 0.4)
  return mix(air, SUNLIGHT, 0.7 * Math.exp(-Math.max(0, Math.hypot(x - SUN[0], y - SUN[1]) - 22) / 38))
}

function seaAt(x: number, y: number): Rgb {
  const near = clamp((y - HORIZON) / (HEIGHT - HORIZON))
  const swell = 0.06 * near * Math.sin(y * (0.9 - 0.55 * near) + 1.6 * Math.sin(x / (14 + 40 * near) + y * 0.05))
  return mix(FAR_SEA, NEAR_SEA, clamp(Math.sqrt(near) + swell))
}

function flat(colour: Rgb): Paint {
  return () => colour
}

function rectangle(top: number, bottom: number): Outline {
  return [
    [0, top],
    [WIDTH, top],
    [WIDTH, bottom],
    [0, bottom]
  ]
}

function ellipse(x: number, y: number, radiusX: number, radiusY: number): Outline {
  return Array.from({ length: 48 }, (_, step): Point => {
    const angle = (step / 24) * Math.PI
    return [x + radiusX * Math.cos(angle), y + radiusY * Math.sin(angle)]
  })
}

/** A small wave seen from the side: pointed at both ends, `length` from the middle to an end. */
function ripple(x: number, y: number, length: number, height: number): Outline {
  const [left, right]: [Point, Point] = [
    [x - length, y + height / 2],
    [x + length, y + height / 2]
  ]
  return [...curve(left, [x, y - 2 * height], right), ...curve(right, [x, y + height / 2], left)]
}

/** A quadratic Bézier curve as points, both ends included. */
function curve(from: Point, control: Point, to: Point): Outline {
  return Array.from({ length: 21 }, (_, step): Point => {
    const t = step / 20
    const [first, second, third] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2]
    return [
      first * from[0] + second * control[0] + third * to[0],
      first * from[1] + second * control[1] + third * to[1]
    ]
  })
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const rest = 1 - share
  return [from[0] * rest + to[0] * share, from[1] * rest + to[1] * share, from[2] * rest + to[2] * share]
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value))
}

function fraction(value: number): number {
  return value - Math.floor(value)
}
