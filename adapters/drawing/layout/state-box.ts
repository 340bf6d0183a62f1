import { isGiven } from '../chart-parts.ts'
import type { OutlineActor, OutlineState, OutlineTransition } from '../outline.ts'
import { KEY_SIZE, TAG_SIZE, TEXT_SIZE } from '../svg/style.ts'
import { shownText } from '../svg/svg-element.ts'
import { cutText, type CutText } from './text-width.ts'
import { linesOf } from './transition-label.ts'

/** A text in a drawing. `x` and `y` are the left end of its baseline. */
export interface PlacedText extends CutText {
  readonly kind: 'key' | 'tag' | 'description' | 'does' | 'stays'
  readonly x: number
  readonly y: number
  /** The transition without a target that the text is for. */
  readonly transition?: OutlineTransition
}

/** The texts at the top of a state's box, and its size, in pixels from its corner. */
export interface StateBox {
  readonly texts: readonly PlacedText[]
  readonly width: number
  readonly height: number
  /** The line between its name and its actions, if it has any. */
  readonly divider?: number
}

/** The padding of a tag's chip. */
export const TAG_PADDING = 6

/** The distance between the two borders of a final state. */
export const BORDERS = 4

const PADDING = 12
const LINE = 17
const LONGEST = 360

/** The box of a state, with its transitions that have no target. Long texts are truncated. */
export function stateBox(state: OutlineState, stays: readonly OutlineTransition[]): StateBox {
  const heading = headingOf(state)
  const lines = [
    ...doingsOf(state).map(text => ({ kind: 'does' as const, text })),
    ...stays.map(transition => ({
      kind: 'stays' as const,
      text: linesOf({ transition, invoked: state.invoke }).join(' '),
      transition
    }))
  ]
  const top = heading.height
  const texts = lines.map(({ text, ...line }, i) => ({
    ...line,
    ...cutText(LONGEST, text, TEXT_SIZE),
    x: PADDING,
    y: top + 10 + (i + 1) * LINE - 6
  }))
  const all = [...heading.texts, ...texts]
  return {
    texts: all,
    width: Math.max(64, ...all.map(({ x, width, kind }) => x + width + PADDING + (kind === 'tag' ? TAG_PADDING : 0))),
    height: top + (texts.length === 0 ? 0 : 13 + texts.length * LINE) + (state.type === 'final' ? BORDERS : 0),
    ...(texts.length > 0 && { divider: top + 3 })
  }
}

/** The name, then the tags, wrapped, and the description. */
function headingOf({ key, tags, description = '' }: OutlineState): { texts: PlacedText[]; height: number } {
  const name = { kind: 'key' as const, ...cutText(LONGEST, key, KEY_SIZE, true), x: PADDING, y: 23 }
  const texts: PlacedText[] = [name]
  let [x, y] = [PADDING + name.width + 10, 23]
  for (const tag of tags) {
    const cut = cutText(LONGEST, tag, TAG_SIZE)
    if (x + cut.width + 2 * TAG_PADDING > PADDING + LONGEST) [x, y] = [PADDING, y + LINE + 4]
    texts.push({ kind: 'tag', ...cut, x: x + TAG_PADDING, y })
    x += cut.width + 2 * TAG_PADDING + 6
  }
  if (shownText(description) !== '') {
    y += LINE
    texts.push({ kind: 'description', ...cutText(LONGEST, description, TEXT_SIZE), x: PADDING, y })
  }
  return { texts, height: y + 11 }
}

function doingsOf({ entry, exit, invoke }: OutlineState): string[] {
  return [
    ...(entry.length > 0 ? [`entry / ${entry.join(', ')}`] : []),
    ...(exit.length > 0 ? [`exit / ${exit.join(', ')}`] : []),
    ...invoke.map(actor => `invoke / ${actorText(actor)}`)
  ]
}

function actorText({ id, src = 'an actor' }: OutlineActor): string {
  return isGiven(id) && id !== src ? `${src} as ${id}` : src
}
