import { decode, hasPngSignature } from 'fast-png'
import t from 'tap'
import { COLOURS, colourIn, drawSailboat } from '../../examples/draw-sailboat.ts'
import { cpuMs } from '../fixtures/processes/cpu-time.ts'

const HULL = { x: 240, y: 256 }
const SAIL = { x: 280, y: 180 }
const SKY = { x: 440, y: 30 }

function pixel(png: Uint8Array, { x, y }: { x: number; y: number }): number[] {
  const { data, width, channels } = decode(png)
  const at = (y * width + x) * channels
  return Array.from(data.subarray(at, at + 3))
}

await t.test('a sailboat is a PNG of 480 by 360 pixels in 8-bit RGB', async test => {
  const png = drawSailboat()
  test.ok(hasPngSignature(png))
  const { width, height, channels, depth } = decode(png, { checkCrc: true })
  test.strictSame({ width, height, channels, depth }, { width: 480, height: 360, channels: 3, depth: 8 })
})

await t.test('the colour paints the hull and the jib and leaves the sky unchanged', async test => {
  const white = drawSailboat({ colour: 'white' })
  const red = drawSailboat({ colour: 'red' })
  for (const part of [HULL, SAIL]) {
    const [redness = 0, greenness = 0, blueness = 0] = pixel(red, part)
    test.ok(redness > 150 && greenness < 60 && blueness < 70, `red paint at ${part.x}, ${part.y}`)
    test.ok(Math.min(...pixel(white, part)) > 200, `white paint at ${part.x}, ${part.y}`)
  }
  test.strictSame(pixel(red, SKY), pixel(white, SKY))
})

await t.test('the same colour gives the same bytes', async test => {
  test.ok(Buffer.from(drawSailboat({ colour: 'blue' })).equals(drawSailboat({ colour: 'blue' })))
})

await t.test('a boat without a colour is white', async test => {
  const white = Buffer.from(drawSailboat({ colour: 'white' }))
  test.ok(white.equals(drawSailboat()))
  test.ok(white.equals(drawSailboat({ colour: colourIn('a sailboat on the ocean') })))
})

await t.test('every named colour is three bytes', async test => {
  for (const [name, channels] of Object.entries(COLOURS)) {
    test.equal(channels.length, 3, name)
    test.ok(
      channels.every(value => Number.isInteger(value) && value >= 0 && value <= 255),
      name
    )
  }
})

await t.test('a text names the first colour that it wishes for, as a whole word in any case', async test => {
  const table: [text: string, colour: string | undefined][] = [
    ['make it red', 'red'],
    ['RED!', 'red'],
    ['Blue, not green', 'blue'],
    ['a red-hulled boat', 'red'],
    ['make the red boat blue', 'blue'],
    ['change it from red to blue', 'blue'],
    ['the red one', 'red'],
    ['paint it grey', 'grey'],
    ['paint it gray', 'gray'],
    ['a bored, tired, reddish blueberry', undefined],
    ['red_2 and ré red\u0301', undefined],
    ['the constructor of toString', undefined],
    ['', undefined]
  ]
  for (const [text, colour] of table) test.equal(colourIn(text), colour, `"${text}" names ${colour ?? 'no colour'}`)
})

await t.test('a very long text without a colour is searched in linear time', async test => {
  const tookMs = await cpuMs(() => {
    test.equal(colourIn('re'.repeat(500_000)), undefined)
    test.equal(colourIn('re '.repeat(300_000)), undefined)
  })
  test.ok(tookMs < 2000, `it takes ${tookMs} ms of at most 2000`)
})
