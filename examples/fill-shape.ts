/** Red, green and blue, each 0 to 255. */
export type Rgb = readonly [red: number, green: number, blue: number]

/** Pixels from the left and from the top. */
export type Point = readonly [x: number, y: number]

/** A closed line through these points, in order. */
export type Outline = readonly Point[]

/** The colour at a place. */
export type Paint = (x: number, y: number) => Rgb

/** A closed outline in pixels. `sway` shifts each line of it sideways by that many pixels. */
export type Shape = { outline: Outline; paint: Paint; opacity?: number; sway?: (y: number) => number }

/** The size of the canvas, in pixels. */
export const WIDTH = 480
export const HEIGHT = 360

const LINES_PER_PIXEL = 4

/** Fills a shape on a canvas of RGB bytes, row by row, its edges smooth. */
export function fill(canvas: Uint8ClampedArray, { outline, paint, opacity = 1, sway = () => 0 }: Shape): void {
  const heights = outline.map(([, y]) => y)
  const row = new Float32Array(WIDTH)
  const bottom = Math.min(HEIGHT, Math.ceil(Math.max(...heights)))
  for (let y = Math.max(0, Math.floor(Math.min(...heights))); y < bottom; y += 1) {
    row.fill(0)
    cover(row, outline, y, sway)
    for (let x = 0; x < WIDTH; x += 1) {
      const share = Number(row[x])
      if (share > 0) blend(canvas, (y * WIDTH + x) * 3, paint(x + 0.5, y + 0.5), Math.min(1, share) * opacity)
    }
  }
}

/** Adds to `row` how much of each pixel at height `y` the outline covers, 0 to 1: exact across, sampled down. */
function cover(row: Float32Array, outline: Outline, y: number, sway: (y: number) => number): void {
  for (let line = 0; line < LINES_PER_PIXEL; line += 1) {
    const height = y + (line + 0.5) / LINES_PER_PIXEL
    const shift = sway(height)
    const xs = crossings(outline, height)
    for (let pair = 0; pair + 1 < xs.length; pair += 2) {
      const from = Math.max(0, Number(xs[pair]) + shift)
      const to = Math.min(WIDTH, Number(xs[pair + 1]) + shift)
      for (let x = Math.floor(from); x < to; x += 1) {
        row[x] = Number(row[x]) + (Math.min(x + 1, to) - Math.max(x, from)) / LINES_PER_PIXEL
      }
    }
  }
}

function crossings(outline: Outline, height: number): number[] {
  const xs: number[] = []
  let previous = outline.at(-1)
  for (const point of outline) {
    if (previous !== undefined && previous[1] <= height !== point[1] <= height) {
      xs.push(previous[0] + ((height - previous[1]) / (point[1] - previous[1])) * (point[0] - previous[0]))
    }
    previous = point
  }
  return xs.toSorted((left, right) => left - right)
}

function blend(canvas: Uint8ClampedArray, at: number, colour: Rgb, share: number): void {
  const rest = 1 - share
  canvas[at] = Number(canvas[at]) * rest + colour[0] * share
  canvas[at + 1] = Number(canvas[at + 1]) * rest + colour[1] * share
  canvas[at + 2] = Number(canvas[at + 2]) * rest + colour[2] * share
}
