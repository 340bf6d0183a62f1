import { isNegotiationPart, offerIn, type Offer } from '../../../machines/protocol/negotiation.ts'
import type { Artifact, Message, Part, Task } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, stateText } from '../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { element } from '../../drawing/svg-element.ts'
import type { ActorStep } from '../feed.ts'
import type { Redact } from '../recorder/seen-step.ts'
import { artifactTitle, eventWords, innermost, partsText, stateName } from './chart-path.ts'
import {
  answerWords,
  choicesIn,
  choiceLabel,
  endKind,
  lineOfMessage,
  type LitStep,
  moveOf,
  moveWords,
  POINT_KINDS,
  type RunPoint,
  runPoints,
  statesAfterAnswer,
  statusWords,
  type StoryLine,
  storyLines,
  type StoryMoment,
  storyMoments
} from './moments.ts'
import { html, partsHtml, plainText } from './story-parts.ts'
import { litDrawing, sizedDrawing, storyStyle, transitionsIn } from './story-style.ts'

/** A chart of a story, with the steps that the task took in it. */
interface StoryChart {
  readonly title: string
  /** The drawing of `taskchart graph`. */
  readonly svg: string
  readonly steps: readonly LitStep[]
  /** Whether the steps are rebuilt from the stored events. */
  readonly isRebuilt: boolean
}

/** The content of a story. */
export interface Story {
  /** The name of the agent, if known. */
  readonly agent?: string
  readonly task: Task
  /** The messages of the context that led to the task, oldest first. */
  readonly before?: readonly Message[]
  /** The events of the task, oldest first; none if they are not known. */
  readonly events: readonly TaskEvent[]
  /** The chart of the work. Without one, the story has the points of the run. */
  readonly work?: StoryChart | undefined
  /** The recorded steps, for those of the work whose results were stored. */
  readonly steps?: readonly ActorStep[]
  /** Other charts, which are lit as they were at last. */
  readonly charts: readonly StoryChart[]
}

/** Nothing is loaded and nothing runs; pictures are part of the file. */
const POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

/** The most moments of the slider. In a longer story neighbours are one moment. */
export const MOST_MOMENTS = 60

/** The longest artifact that the conversation has whole, as JSON. */
const LONGEST_HERE = 64 * 1024

/**
 * The story of a task as one HTML file, which needs no network: the conversation beside the chart that was lit then, at
 * each moment that a slider made of HTML and CSS chooses; below are its artifacts, its sequence and its other charts.
 * `redact` copies texts and data without secrets; files stay as they are.
 */
export function storyHtml(story: Story, redact: Redact): string {
  return new StoryFile(story, redact).html
}

class StoryFile {
  readonly #story: Story
  readonly #redact: Redact
  readonly #lines: readonly StoryLine[]
  readonly #moments: readonly StoryMoment[]
  /** The ends of offers, by their ids. */
  readonly #offerEnds = new Map<string, string>()
  /** The labels of choices, by their JSON. */
  readonly #labels = new Map<string, string>()
  /** The events that made artifacts as they are, by their ids. */
  readonly #results = new Map<string, TaskEvent>()

  constructor(story: Story, redact: Redact) {
    const { task, before = [], events, work } = story
    this.#story = story
    this.#redact = redact
    this.#lines = [
      ...before.map((message, i) => ({ ...lineOfMessage(message), generation: i + 1 - before.length })),
      ...storyLines(task, events)
    ]
    this.#moments = storyMoments(this.#lines, work?.steps ?? [], MOST_MOMENTS)
    for (const { message } of this.#lines) if (message) this.#noteAnswers(message)
    for (const event of events)
      if ('artifactUpdate' in event.update && !event.update.artifactUpdate.append)
        this.#results.set(event.update.artifactUpdate.artifact.artifactId, event)
  }

  get html(): string {
    const { agent, task, work, steps = [], charts } = this.#story
    const title = plainText(`${agent === undefined ? '' : `${agent}: `}task ${task.id}`)
    const lines = work ? this.#lines.filter(({ generation = 1 }) => generation <= 0) : this.#lines
    const points = runPoints(lines, work ? [] : steps)
    const counts = this.#moments.map(one => points.filter(({ generation }) => generation <= one.generation).length)
    const head = [
      '<meta charset="utf-8"/>',
      '<meta name="viewport" content="width=device-width"/>',
      `<meta http-equiv="Content-Security-Policy" content="${POLICY}"/>`,
      html('title', {}, title),
      html('style', {}, storyStyle(counts))
    ]
    const body = html(
      'main',
      {},
      html(
        'section',
        { class: 'story', 'aria-label': 'The story' },
        this.#header(title),
        html('div', { class: 'halves' }, this.#talk(), html('div', { class: 'runs' }, ...this.#runs(points, counts))),
        this.#slider()
      ),
      html('h2', {}, 'Artifacts'),
      ...this.#artifacts(),
      details('Sequence', this.#sequence()),
      ...charts.map(chart => this.#chart(chart))
    )
    return `<!doctype html>\n${html('html', { lang: 'en' }, html('head', {}, ...head), html('body', {}, body))}\n`
  }

  /** The title, a line on the task at each moment, and for a phone the switch between the halves. */
  #header(title: string): string {
    const { task, work } = this.#story
    const choice = (id: string, name: string, isChosen: boolean) => html('label', {}, radio('half', id, isChosen), name)
    return html(
      'header',
      {},
      html('h1', { title: `context ${task.contextId}, ${task.status.timestamp ?? ''}` }, title),
      html('div', { class: 'nows', 'aria-live': 'polite' }, ...this.#moments.map((one, i) => this.#now(one, i))),
      html(
        'fieldset',
        { class: 'switch' },
        '<legend>What is shown</legend>',
        choice('half-talk', 'Conversation', true),
        choice('half-run', work ? 'Chart' : 'Steps', false)
      )
    )
  }

  /** The line on the task at a moment: its state, its question and the states after an answer, or its end. */
  #now({ generation, status, results, lines }: StoryMoment, i: number): string {
    const { from, message } = lines.at(-1) as StoryLine
    const line = (kind: string, badge: string, words: string, hint = '') => {
      const more = hint === '' ? '' : html('b', {}, ` ${this.#text(hint)}`)
      return html(
        'p',
        { class: `now at${i}` },
        html('b', { class: `badge ${kind}` }, badge),
        ` ${this.#text(words)}`,
        more
      )
    }
    const words = partsText(message?.parts.filter(part => !isNegotiationPart(part)))
    if (generation <= 0 && message && offerIn(message))
      return line('asks', 'offer stands', 'An offer of the agent stands. If the client accepts it, the work begins.')
    const said = `The ${from} ${status && isInterrupted(status.state) ? 'answers' : 'says'}: “${words}”`
    if (!status) return line('works', 'no task yet', said)
    const badge = stateText(status.state)
    if (from === 'client') return line('works', badge, said)
    const { work } = this.#story
    const states = work ? statesAfterAnswer(this.#statesAt(i), transitionsIn(work.svg)) : []
    return line(
      isInterrupted(status.state) ? 'asks' : isTerminal(status.state) ? endKind(status.state) : 'works',
      badge,
      statusWords(status, partsText(status.message?.parts), Array.from(results.values(), artifactTitle), 'anyone'),
      answerWords(status, states)
    )
  }

  #statesAt(moment: number): readonly string[] {
    return (
      this.#moments
        .slice(0, moment + 1)
        .flatMap(({ steps }) => steps)
        .at(-1)?.states ?? []
    )
  }

  #talk(): string {
    const said = this.#moments.map(({ lines }, i) =>
      html('div', { id: `t${i}` }, ...lines.map(line => this.#item(line)))
    )
    return html(
      'div',
      { class: 'talk', role: 'region', tabindex: '0', 'aria-label': 'The conversation' },
      html('div', {}, ...said)
    )
  }

  #item({ from, message, event }: StoryLine): string {
    const { update } = event ?? {}
    if (update && 'artifactUpdate' in update) {
      const { artifact } = update.artifactUpdate
      return this.#results.get(artifact.artifactId) === event ? this.#result(artifact) : ''
    }
    const state = update?.statusUpdate.status.state
    const isEnd = state !== undefined && isTerminal(state)
    const end = isEnd ? html('p', { class: 'quiet' }, `The task is ${stateText(state)}.`) : ''
    if (!message) return end
    if (state && isInterrupted(state)) return this.#question(message)
    if (state && !isEnd) return html('p', { class: 'progress' }, this.#text(partsText(message.parts)))
    return this.#message(message, from) + end
  }

  #message(message: Message, from: StoryLine['from']): string {
    const isClient = from === 'client'
    const offer = isClient ? undefined : offerIn(message)
    const move = isClient ? moveOf(message) : undefined
    const parts = message.parts
      .filter(part => !(offer || move) || !isNegotiationPart(part))
      .map(part => (isClient ? this.#labelled(part) : part))
    return html(
      'article',
      { class: offer ? 'agent offer' : from },
      html('p', { class: 'quiet' }, offer ? 'agent offers' : from),
      partsHtml(parts, this.#redact),
      move ? html('p', {}, moveWords(move)) + this.#terms(Object(move['propose']).terms) : '',
      offer ? this.#offer(offer) : ''
    )
  }

  /** The answer to a choice as the label of the choice. */
  #labelled(part: Part): Part {
    const label = 'data' in part ? this.#labels.get(JSON.stringify(part.data)) : undefined
    return label === undefined ? part : { text: label }
  }

  #noteAnswers(message: Message): void {
    const { accept, decline } = (message.role === 'ROLE_USER' && moveOf(message)) || {}
    if (accept !== undefined) this.#offerEnds.set(String(Object(accept).offerId), 'The client accepted it.')
    if (decline !== undefined) this.#offerEnds.set(String(Object(decline).offerId), 'The client declined it.')
    for (const part of message.role === 'ROLE_AGENT' ? choicesIn(message) : [])
      if ('data' in part && !isNegotiationPart(part)) this.#labels.set(JSON.stringify(part.data), choiceLabel(part))
  }

  #question(message: Message): string {
    const choices = choicesIn(message)
    const items = choices.map(part => html('li', {}, this.#text(choiceLabel(part))))
    return html(
      'article',
      { class: 'agent asks' },
      html('p', { class: 'quiet' }, 'agent asks'),
      partsHtml(
        message.parts.filter(part => !choices.includes(part)),
        this.#redact
      ),
      items.length === 0 ? '' : html('ul', { class: 'choices', 'aria-label': 'Choices' }, ...items)
    )
  }

  #offer({ offerId, terms, expiresAt }: Offer): string {
    const end = this.#offerEnds.get(offerId) ?? `It stood until ${expiresAt}.`
    return this.#terms(terms) + html('p', { class: 'quiet' }, this.#text(end))
  }

  #terms(terms: unknown): string {
    const rows = Object.entries(Object(this.#redact(terms)) as object).map(
      ([name, value]) =>
        html('dt', {}, plainText(name)) +
        html('dd', {}, plainText(typeof value === 'string' ? value : JSON.stringify(value)))
    )
    return rows.length === 0 ? '' : html('dl', {}, ...rows)
  }

  /** An artifact where it was made. A long one stands whole only below. */
  #result({ artifactId, name }: Artifact): string {
    const { artifacts = [] } = this.#story.task
    const i = artifacts.findIndex(one => one.artifactId === artifactId)
    const { parts = [] } = artifacts[i] ?? {}
    const isLong = JSON.stringify(parts).length > LONGEST_HERE
    return html(
      'article',
      { class: 'agent result' },
      html('p', {}, html('b', {}, this.#text(name || artifactId))),
      isLong
        ? html('pre', { class: 'text' }, this.#text(partsText(parts))) +
            html('p', {}, html('a', { href: `#artifact-${i}` }, 'The whole artifact is below.'))
        : partsHtml(parts, this.#redact)
    )
  }

  /** The other half: the chart of the work with the points before it, or without a chart all points. */
  #runs(points: readonly RunPoint[], counts: readonly number[]): string[] {
    const { work } = this.#story
    if (!work) return [this.#points(points, counts, 'run')]
    const chart = this.#picture(
      work,
      this.#moments.map(({ steps }) => steps)
    )
    return points.length === 0 ? [chart] : [this.#points(points, counts, 'run negotiation'), chart]
  }

  /** A chart that is lit at each moment, by the steps in it. */
  #picture({ title, svg }: StoryChart, steps: readonly (readonly LitStep[])[]): string {
    let active: readonly string[] = []
    const feet = steps.map((own, i) => {
      active = own.at(-1)?.states ?? active
      const now = innermost(active).map(stateName).join(', ')
      return html('p', { class: `foot at${i}` }, this.#text(now === '' ? title : `${title}, now: ${now}`))
    })
    return html(
      'section',
      { class: 'run', 'aria-label': title },
      html(
        'div',
        { class: 'picture', role: 'region', tabindex: '0', 'aria-label': `${title}, as a chart` },
        sizedDrawing(litDrawing(svg, steps))
      ),
      ...feet
    )
  }

  #points(points: readonly RunPoint[], counts: readonly number[], name: string): string {
    const startMs = points.find(({ atMs }) => atMs > 0)?.atMs ?? 0
    const items = points.map(({ kind, text, atMs }, i) => {
      const moment = counts.findIndex(count => count > i)
      const content = [
        html('span', { class: 'quiet' }, POINT_KINDS[kind]),
        html('span', {}, this.#text(text)),
        html('span', { class: 'quiet' }, atMs > startMs ? `+${((atMs - startMs) / 1000).toFixed(1)} s` : '')
      ]
      return html('li', { id: `p${i}`, class: kind }, html('label', { for: `m${Math.max(0, moment)}` }, ...content))
    })
    return html(
      'section',
      { class: name, 'aria-label': 'The run' },
      html(
        'div',
        { class: 'points', role: 'region', tabindex: '0', 'aria-label': 'The run, step by step' },
        items.length === 0 ? html('p', { class: 'quiet' }, 'Nothing of this run is known.') : html('ol', {}, ...items)
      )
    )
  }

  /** A radio button for each moment: arrow keys go from one to the next. */
  #slider(): string {
    const last = this.#moments.length - 1
    const texts = this.#moments.map(({ lines }) => this.#text(momentText(lines)))
    const words = texts.map((text, i) => {
      const go = (to: number, sign: string) =>
        html('label', to < 0 || to > last ? { class: 'off' } : { for: `m${to}` }, sign)
      const place = html('span', { class: 'place' }, `${i + 1} of ${last + 1}`)
      return html(
        'p',
        { class: `at${i}`, 'aria-hidden': 'true' },
        go(i - 1, '◀'),
        place,
        go(i + 1, '▶'),
        html('span', {}, text)
      )
    })
    const radios = this.#moments.map(({ lines, generation }, i) =>
      html(
        'label',
        {},
        radio('moment', `m${i}`, i === last, {
          class: generation <= 0 ? 'offering' : undefined,
          'aria-label': `${i + 1} of ${last + 1}: ${String(this.#redact(momentText(lines)))}`
        })
      )
    )
    return html(
      'fieldset',
      { class: 'slider' },
      '<legend>Moment</legend>',
      html('div', { class: 'radios' }, ...radios),
      ...words
    )
  }

  #artifacts(): string[] {
    const { artifacts = [] } = this.#story.task
    if (artifacts.length === 0) return ['<p class="quiet">None.</p>']
    return artifacts.map(({ artifactId, name, description, parts }, i) =>
      html(
        'article',
        { id: `artifact-${i}` },
        html('b', {}, this.#text(name || artifactId)),
        html('p', { class: 'quiet' }, this.#text(description ?? '')),
        partsHtml(parts, this.#redact)
      )
    )
  }

  #sequence(): string {
    const rows = this.#lines.map(({ generation = 0, from, what, message }) =>
      html(
        'tr',
        {},
        html('td', {}, generation <= 0 ? '' : String(generation)),
        html('td', {}, from === 'client' ? 'client → agent' : 'agent → client'),
        html('td', {}, plainText(what)),
        html('td', {}, this.#text(partsText(message?.parts)))
      )
    )
    const head = ['Generation', 'Way', 'What', 'Words'].map(name => html('th', {}, name))
    return html('table', {}, html('thead', {}, html('tr', {}, ...head)), html('tbody', {}, ...rows))
  }

  /** Another chart, lit as it was at last. */
  #chart({ title, svg, steps, isRebuilt }: StoryChart): string {
    const note = steps.length === 0 ? 'No step of it was recorded.' : isRebuilt ? 'Rebuilt from the stored events.' : ''
    const all = this.#moments.map((_, i) => (i === this.#moments.length - 1 ? steps : []))
    return details(title, html('div', { class: 'chart' }, litDrawing(svg, all)) + html('p', { class: 'quiet' }, note))
  }

  /** A text without secrets, as HTML. */
  #text(text: string): string {
    return plainText(String(this.#redact(text)))
  }
}

/** The newest line of a moment, in a few words. */
function momentText(lines: readonly StoryLine[]): string {
  const { from, message, event } = lines.at(-1) as StoryLine
  const text = event
    ? eventWords(event)
    : `${from}: ${partsText(message?.parts.filter(part => !isNegotiationPart(part)))}`
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}

function details(summary: string, content: string): string {
  return html('details', {}, html('summary', {}, html('h2', {}, plainText(summary))), content)
}

function radio(
  name: string,
  id: string,
  isChosen: boolean,
  attributes: Readonly<Record<string, string | undefined>> = {}
): string {
  return element('input', { type: 'radio', name, id, checked: isChosen ? 'checked' : undefined, ...attributes })
}
