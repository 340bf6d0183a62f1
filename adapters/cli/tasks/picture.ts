import type { Task } from '../../../machines/protocol/objects.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { redactValue } from '../../../runtime/ports/logger.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { type CutText, wrapText } from '../../drawing/style.ts'
import { attributeText, element, formatDecimal, svgText } from '../../drawing/svg-element.ts'
import { innermost, partsText, stateName } from '../../inspector/story/chart-path.ts'
import { type LitStep, storyLines } from '../../inspector/story/moments.ts'

/** A task, and a chart with its steps. */
interface Pictured {
  readonly task: Task
  /** Oldest first. */
  readonly events: readonly TaskEvent[]
  /** The drawing of `drawChart`. */
  readonly svg: string
  readonly steps: readonly LitStep[]
}

/** Something that client or agent says; `…` stands for what is left out. */
interface Bubble {
  readonly from: 'client' | 'agent' | '…'
  readonly text: string
}

/** A moment of a picture: the words that are said, and the lit states. */
interface Moment {
  readonly bubble?: Bubble
  readonly states: readonly string[]
  readonly transitions: readonly string[]
}

/** The most moments of a picture. Of a longer task the first half of them and the last half are shown. */
const MOST_MOMENTS = 30
/** The seconds of a moment in a short picture, of the last one, and of all the others together in a long one. */
const [MOMENT_S, LAST_S, LONGEST_S] = [2, 4, 36]

const TALK_WIDTH = 300
const MARGIN = 16
const FONT_SIZE = 13
const LINE = 18
const BUBBLE_WIDTH = TALK_WIDTH - 3 * MARGIN
const MOST_LINES = 4

/**
 * A task as a moving SVG: its chart with the lit state, and beside it what client and agent say. It repeats after at
 * most 40 seconds. A reader who wants no motion sees its end, and one who sees nothing has its description. Secrets are
 * left out as in logs.
 */
export function taskPicture({ task, events, svg, steps }: Pictured): string {
  const moments = shortened(momentsOf(task, events, steps))
  const size = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)
  const [width, height] = [Number(size?.[1]), Number(size?.[2])]
  const animation = new Animation(moments)
  const chart = animation.lit(svg)
  const talk = talkOf(moments, animation, height - 2 * MARGIN)
  const frame = {
    xmlns: 'http://www.w3.org/2000/svg',
    class: 'statechart',
    role: 'img',
    viewBox: `0 0 ${width + TALK_WIDTH} ${height}`,
    width: width + TALK_WIDTH,
    height
  }
  return `${element('svg', frame, [
    element('title', {}, [svgText(`Task ${task.id}: its chart, and what client and agent say`)]),
    element('desc', {}, [svgText(description(task, moments))]),
    element('rect', { class: 'canvas', width: width + TALK_WIDTH, height, rx: 8 }),
    `\n${chart.trim()}`,
    element('style', {}, [`\n${animation.style}\n${TALK_STYLE}\n`]),
    element('svg', { x: width, y: MARGIN, width: TALK_WIDTH, height: height - 2 * MARGIN }, [talk])
  ])}\n`
}

const TALK_STYLE = `.talk text{font-size:${FONT_SIZE}px}.talk .who{font-size:11px;fill:var(--muted)}.talk .client{fill:var(--tag)}.talk .agent{fill:var(--label)}
@media (prefers-reduced-motion:reduce){*{animation:none!important}}`

/** Each message and event of a task is a moment, unless nothing is said or lit in it. */
function momentsOf(task: Task, events: readonly TaskEvent[], steps: readonly LitStep[]): Moment[] {
  const moments: Moment[] = []
  const stepAt = new Map(steps.map(step => [step.generation, step]))
  const eventAt = new Map(events.map(event => [event.generation, event]))
  let lit: Moment = { states: [], transitions: [] }
  for (const { generation = NaN, from, message } of storyLines(task, events)) {
    const update = eventAt.get(generation)?.update
    const artifact = update && 'artifactUpdate' in update ? update.artifactUpdate.artifact : undefined
    const text = String(redactValue(partsText((message ?? artifact)?.parts)))
    const { states, transitions } = stepAt.get(generation) ?? lit
    const isStep = states.join() !== lit.states.join()
    lit = { states, transitions: isStep ? transitions : [] }
    if (!isStep && text === '') continue
    const last = moments.at(-1)
    const bubble = text === '' ? undefined : { from, text }
    // What the agent says in the states that it has just reached belongs to the same moment.
    if (last && !last.bubble && !isStep && from === 'agent')
      moments.splice(-1, 1, { ...last, ...(bubble && { bubble }) })
    else moments.push({ ...lit, ...(bubble && { bubble }) })
  }
  return moments
}

function shortened(moments: readonly Moment[]): readonly Moment[] {
  if (moments.length <= MOST_MOMENTS) return moments
  const half = MOST_MOMENTS / 2
  const skipped = { from: '…' as const, text: `${moments.length - MOST_MOMENTS} moments are left out` }
  return [...moments.slice(0, half), { bubble: skipped, states: [], transitions: [] }, ...moments.slice(-half)]
}

/** The picture in words. */
function description({ status }: Task, moments: readonly Moment[]): string {
  const words = moments.map(({ bubble, states }) => {
    const state = states.length === 0 ? '' : ` (${innermost(states).map(stateName).join(', ')})`
    const text = `${bubble ? `${bubble.from}: ${bubble.text}` : 'the chart goes on'}${state}`
    return /[.!?]$/.test(text) ? text : `${text}.`
  })
  return [...words, `The task is ${stateText(status.state)}.`].join(' ')
}

/** The rules that light the parts of a picture at its moments. */
class Animation {
  readonly #moments: readonly Moment[]
  readonly #rules: string[] = []
  readonly #momentS: number

  constructor(moments: readonly Moment[]) {
    this.#moments = moments
    this.#momentS = Math.min(MOMENT_S, LONGEST_S / Math.max(1, moments.length - 1))
  }

  get style(): string {
    return this.#rules.join('\n')
  }

  /** Animates what a selector selects by the declarations at each moment. Without motion those of the last one hold. */
  add(selector: string, declarationsAt: (moment: number) => string): void {
    const steps = this.#moments.map((_, i) => declarationsAt(i))
    const seconds = (steps.length - 1) * this.#momentS + LAST_S
    const name = `m${this.#rules.length}`
    const frames = steps.flatMap((step, i) =>
      step === steps[i - 1] ? [] : [`${formatDecimal((i * this.#momentS * 100) / seconds)}%{${step}}`]
    )
    this.#rules.push(
      `@keyframes ${name}{${frames.join('')}}${selector}{${steps.at(-1)};animation:${name} ${formatDecimal(seconds)}s step-end infinite}`
    )
  }

  /** The drawing of a chart with a class for each part that is lit at a moment. */
  lit(svg: string): string {
    const of = (part: 'states' | 'transitions') =>
      new Map(
        [...new Set(this.#moments.flatMap(moment => moment[part]))].map(name => [attributeText(name), name] as const)
      )
    const [states, transitions] = [of('states'), of('transitions')]
    // The chart itself is active all the time.
    states.delete(String(/ data-state="([^"]*)"/.exec(svg)?.[1]))
    return svg.replace(
      /<g class="([^"]*)" data-(state|transition)="([^"]*)"/g,
      (whole, classes: string, kind: string, written: string) => {
        const name = (kind === 'state' ? states : transitions).get(written)
        if (name === undefined) return whole
        const own = `lit${this.#rules.length}`
        if (kind === 'state') this.#lightState(`.${own}>.box`, name, classes.includes('leaf'))
        else this.#lightTransition(`.${own}`, name)
        return `<g class="${classes} ${own}" data-${kind}="${written}"`
      }
    )
  }

  #lightState(selector: string, id: string, isLeaf: boolean): void {
    const [on, off] = isLeaf ? [';fill:var(--active-fill)', ';fill:var(--state)'] : ['', '']
    this.add(selector, i =>
      this.#moments[i]?.states.includes(id)
        ? `stroke:var(--active);stroke-width:2.5${on}`
        : `stroke:var(--border);stroke-width:1.25${off}`
    )
  }

  #lightTransition(selector: string, name: string): void {
    const isLit = (i: number) => this.#moments[i]?.transitions.includes(name)
    this.add(`${selector}>.edge`, i =>
      isLit(i) ? 'stroke:var(--taken);stroke-width:3' : 'stroke:var(--edge);stroke-width:1.5'
    )
    this.add(`${selector}>.head`, i => `fill:var(--${isLit(i) ? 'taken' : 'edge'})`)
  }
}

/** The messages, one bubble below the other. They move up when they are higher than the picture. */
function talkOf(moments: readonly Moment[], animation: Animation, room: number): string {
  let y = 0
  const bubbles = moments.map(({ bubble }) => {
    const lines = bubble ? wrapText(BUBBLE_WIDTH - 24, bubble.text, FONT_SIZE, MOST_LINES) : []
    const top = y
    y += bubble ? 14 + lines.length * LINE + 14 + 12 : 0
    return { from: bubble?.from, lines, top, end: y }
  })
  animation.add('.talk', i => `transform:translateY(${formatDecimal(Math.min(0, room - Number(bubbles[i]?.end)))}px)`)
  const drawn = bubbles.flatMap(({ from, lines, top }, i) => {
    if (!from) return []
    animation.add(`.said${i}`, at => `opacity:${at >= i ? 1 : 0}`)
    return [bubbleOf(from, lines, top, `said${i}`)]
  })
  return element('g', { class: 'talk' }, drawn)
}

function bubbleOf(from: Bubble['from'], lines: readonly CutText[], y: number, name: string): string {
  const width = Math.max(...lines.map(({ width }) => width)) + 24
  const x = from === 'client' ? TALK_WIDTH - MARGIN - width : MARGIN
  return element('g', { class: name }, [
    element('text', { class: 'who', x, y: y + 9 }, [from]),
    element('rect', {
      class: from === 'client' ? from : 'agent',
      x,
      y: y + 14,
      width,
      height: lines.length * LINE + 14,
      rx: 10
    }),
    ...lines.map(({ text }, i) => element('text', { x: x + 12, y: y + 33 + i * LINE }, [svgText(text)]))
  ])
}
