import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { eventName, isMadeUp, OWN_ACTION } from '../../machines/xstate-names.ts'
import { publishedSchema } from '../authoring/input-schema.ts'
import type { Names } from '../snapshots/renames.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import {
  actionName,
  guardName,
  type WrittenAction,
  type WrittenActor,
  writtenChart,
  type WrittenChart,
  type WrittenGuard,
  type WrittenState,
  type WrittenTransition
} from '../xstate/written-chart.ts'
import { codeText, type CodeText, textDigest } from './code-text.ts'
import { withOldNames } from './old-names.ts'

/** A piece of an author's code in a chart. */
export interface CodePart {
  readonly kind: 'guard' | 'action' | 'actor' | 'delay' | 'question' | 'output' | 'input' | 'params' | 'context'
  /** Its name in `setupWork`, or where it is written. */
  readonly name: string
  readonly isNamed: boolean
  readonly code: PartCode
  /** The name of the transition in which it is written. */
  readonly transition?: string
  /**
   * The digests of what it reads at the top of the modules with charts, by names; missing if the modules were not read.
   */
  readonly reads?: Readonly<Record<string, string>>
}

/** The text of a piece of code, as it is compared. */
export interface PartCode {
  /** Of its text, apart from types, comments and layout. */
  readonly digest: string
  /** Its first source, without layout, of at most 4,000 characters. Empty if it has none. */
  readonly source: string
  /** Whether some of it cannot be read. */
  readonly isHidden: boolean
}

/** Gives what sources read at the top of the modules with charts: texts, by the names that they declare. */
export type ModuleReads = (sources: readonly string[]) => ReadonlyMap<string, string>

/** A piece of code whose text is read. */
type DraftPart = Omit<CodePart, 'code' | 'reads'> & { readonly code: CodeText }

/** A state of a chart, as it is compared. */
export interface StateParts {
  readonly state: WrittenState
  /** The parts that decide while it is active. */
  readonly active: Decisive
  /** The parts that decide only when it is entered: a restore enters no state. */
  readonly entry: Decisive
}

/** Parts of a chart that decide its behaviour: a digest of everything apart from code, and the code. */
export interface Decisive {
  readonly shape: string
  readonly code: readonly CodePart[]
}

/** The form of the answer that a state asks for. */
export interface AnswerForm {
  readonly type: 'input-required' | 'auth-required'
  /** The JSON Schema that clients see; `undefined` if any answer is taken. */
  readonly schema: Record<string, unknown> | undefined
  readonly hasSchema: boolean
}

/** A chart, as it is compared. */
export interface ChartParts {
  /** Missing if it was read from a store. */
  readonly machine?: AnyStateMachine
  readonly chart: WrittenChart
  /** By the path of the state, which a stored task has: its keys, joined by dots. Empty for the root. */
  readonly states: ReadonlyMap<string, StateParts>
  /** The actors that the chart has by name. */
  readonly actors: readonly CodePart[]
  readonly guards: readonly CodePart[]
  readonly actions: readonly CodePart[]
  readonly delays: readonly CodePart[]
  /** Its first context, which only its start reads. */
  readonly context: CodePart
  /** Whether its actions may start any of its actors, or use anything by its name. */
  readonly hasOpenNames: boolean
  /** The names of its actors that are charts. */
  readonly actorCharts: ReadonlySet<string>
}

/** The path of a state: `active.working`. Empty for the root. */
export function pathOf({ path }: WrittenState): string {
  return path.join('.')
}

/** The path of a state, in words. */
export function nameOf(state: WrittenState): string {
  return pathOf(state) || 'the chart'
}

/** Reads a chart for a comparison. `names`: those by which its parts get their names in another version. */
export function partsOf(machine: AnyStateMachine, reads?: ModuleReads, names?: Names): ChartParts {
  const chart = names ? withOldNames(writtenChart(machine), names) : writtenChart(machine)
  const oldSources = new Map(Array.from(names?.sources ?? [], ([old, name]) => [name, old]))
  const named = (kind: 'guards' | 'actions' | 'actors' | 'delays') =>
    Object.entries(machine.implementations[kind] as Readonly<Record<string, unknown>>)
      .filter(([name]) => !isMadeUp(name))
      .map(([now, value]): DraftPart => {
        const name = kind === 'actors' ? (oldSources.get(now) ?? now) : now
        return { kind: KINDS[kind], name, isNamed: true, code: codeText(value) }
      })
  const [guards, actions, actors, delays] = [named('guards'), named('actions'), named('actors'), named('delays')]
  const reader = new StateReader(chart, [...guards, ...actions, ...actors, ...delays])
  const sealed = new Map<DraftPart, CodePart>()
  const seal = (parts: readonly DraftPart[]) =>
    parts.map(part => {
      const known = sealed.get(part) ?? sealedPart(part, reads)
      sealed.set(part, known)
      return known
    })
  const texts: string[] = []
  const decisive = ({ shape, code }: DraftDecisive): Decisive => {
    texts.push(...code.map(({ code: { text } }) => text))
    return { shape: textDigest(shape), code: seal(code) }
  }
  const states = new Map(
    chart.states.map(state => {
      const { active, entry } = reader.partsOf(state)
      return [pathOf(state), { state, active: decisive(active), entry: decisive(entry) }]
    })
  )
  const context: DraftPart = { kind: 'context', name: 'context', isNamed: false, code: codeText(chart.context) }
  const isChartNamed = ({ name }: DraftPart) =>
    isMachine(machine.implementations.actors[names?.sourceOf(name) ?? name] as AnyActorLogic)
  return {
    machine,
    chart,
    states,
    actors: seal(actors),
    guards: seal(guards),
    actions: seal(actions),
    delays: seal(delays),
    context: sealedPart(context, reads),
    hasOpenNames: texts.some(text => /\bspawn(?:Child)?\b/.test(text) || text.includes(OWN_ACTION.enqueueActions)),
    actorCharts: new Set(actors.filter(isChartNamed).map(({ name }) => name))
  }
}

/** The maximum number of characters of a source that is shown. */
const SHOWN_SOURCE = 4000

function sealedPart({ code, ...part }: DraftPart, reads: ModuleReads | undefined): CodePart {
  const { text, sources, isHidden } = code
  return {
    ...part,
    code: { digest: textDigest(text), source: (sources[0] ?? '').slice(0, SHOWN_SOURCE), isHidden },
    ...(reads && { reads: Object.fromEntries(Array.from(reads(sources), ([name, read]) => [name, textDigest(read)])) })
  }
}

const KINDS = { guards: 'guard', actions: 'action', actors: 'actor', delays: 'delay' } as const

/** The form of the answer that a state asks for, if it asks. */
export function answerFormOf({ tags, meta = {} }: WrittenState): AnswerForm | undefined {
  const type = tags.includes('auth-required')
    ? 'auth-required'
    : tags.includes('input-required')
      ? 'input-required'
      : undefined
  if (!type) return undefined
  return { type, schema: publishedSchema(meta), hasSchema: meta['schema'] !== undefined }
}

/** The form of an answer, in words. */
export function answerFormText({ type, schema, hasSchema }: AnswerForm): string {
  const { $schema: _, ...shown } = schema ?? {}
  const form = schema ? JSON.stringify(shown) : hasSchema ? 'a schema without JSON' : 'any answer'
  return type === 'auth-required' ? `${form}, out of band` : form
}

interface DraftDecisive {
  readonly shape: string
  readonly code: readonly DraftPart[]
}

class StateReader {
  readonly #root: WrittenState
  readonly #output: unknown
  readonly #options: unknown
  readonly #named: readonly DraftPart[]
  #code: DraftPart[] = []
  /** The name of the transition that is read. */
  #at: string | undefined

  constructor({ root, output, options }: WrittenChart, named: readonly DraftPart[]) {
    this.#root = root
    this.#output = output
    this.#options = options
    this.#named = named
  }

  partsOf(state: WrittenState): { readonly active: DraftDecisive; readonly entry: DraftDecisive } {
    return {
      active: this.#decisive(() => this.#activeShape(state)),
      entry: this.#decisive(() => this.#entryShape(state))
    }
  }

  #decisive(read: () => unknown): DraftDecisive {
    this.#code = []
    const shape = JSON.stringify(read())
    return { shape, code: this.#code }
  }

  #activeShape(state: WrittenState): unknown {
    const { id, key: at, type, history, tags, meta = {}, states, exit, invoke, transitions, route } = state
    const { prompt, schema, ...data } = meta
    const isRoot = state === this.#root
    return [
      id,
      type,
      history,
      tags,
      answerFormOf(state),
      type === 'parallel' ? states.map(({ key }) => key) : states.length > 0,
      // A history state is never active, and leads to its siblings.
      states.map(child => child.history && [child.key, child.history, child.initial.map(pathOf)]).filter(Boolean),
      this.#value('question', `the prompt of ${at}`, prompt),
      this.#value('question', `the schema of ${at}`, schema),
      this.#value('question', `the meta of ${at}`, data),
      this.#value('output', `the output of ${at}`, isRoot ? this.#output : state.output),
      isRoot ? this.#value('params', 'the options of the chart', this.#options) : '',
      this.#actions(exit, `the exit of ${at}`),
      invoke.map(actor => this.#actor(actor, at)),
      transitions.map(one => this.#transition(one)),
      route && [
        this.#actions(route.actions, `the route to ${at}`),
        route.guard && this.#guard(route.guard, `the route to ${at}`)
      ]
    ]
  }

  #entryShape({ key: at, initial, entry, initialActions, invoke }: WrittenState): unknown {
    return [
      initial.map(pathOf),
      this.#actions(entry, `the entry of ${at}`),
      this.#actions(initialActions, `the way into ${at}`),
      invoke.map(({ id, src, written }) =>
        this.#value('input', `the input of ${src ?? id} in ${at}`, Object(written).input)
      )
    ]
  }

  #transition(one: WrittenTransition): unknown {
    const { name, source, event, targets, guard, actions, reenter, delay } = one
    const alike = source.transitions.filter(other => other.event === event)
    const branch = alike.length > 1 ? ` (branch ${alike.indexOf(one) + 1})` : ''
    const place = `${nameOf(source)} on ${event === '' ? 'its own' : eventName(event, source.invoke)}${branch}`
    if (typeof delay === 'string') this.#use('delay', delay)
    this.#at = name
    const shape = [
      event,
      targets.map(pathOf),
      reenter,
      guard && this.#guard(guard, place),
      this.#actions(actions, place)
    ]
    this.#at = undefined
    return shape
  }

  #guard(guard: WrittenGuard, place: string): unknown {
    if (guard.kind === 'named') {
      this.#use('guard', guard.name)
      return [guardName(guard), this.#value('params', `the params of ${guard.name} in ${place}`, guard.params)]
    }
    if (guard.kind !== 'inline') return [guard.kind, guard.guards.map(one => this.#guard(one, place))]
    return this.#value('guard', `the condition ${guard.name === '' ? '' : `${guard.name} `}of ${place}`, guard.run)
  }

  #actions(actions: readonly WrittenAction[], place: string): unknown {
    return actions.map((action, i) => {
      const name = actionName(action)
      const which = `${name} in ${place}${actions.length > 1 ? ` (${i + 1})` : ''}`
      if (action.kind !== 'named') return [name, this.#value('action', which, action.written)]
      this.#use('action', name)
      return [name, this.#value('params', `the params of ${which}`, Object(action.written).params)]
    })
  }

  #actor({ id, src, written }: WrittenActor, at: string): unknown {
    const { src: logic, systemId, syncSnapshot } = Object(written) as Record<string, unknown>
    if (src !== undefined) this.#use('actor', src)
    return [id, src ?? this.#value('actor', `the actor of ${at}`, logic), systemId, syncSnapshot === true]
  }

  /** Notes code that is used by its name. */
  #use(kind: CodePart['kind'], name: string): void {
    const found = this.#named.find(part => part.kind === kind && part.name === name)
    this.#note(found ?? { kind, name, isNamed: true, code: codeText(undefined) })
  }

  /** Notes code, with all that it names in a text: guards are combined by their names, and actions enqueued. */
  #note(part: DraftPart): void {
    if (this.#code.includes(part)) return
    this.#code.push(part)
    const { text } = part.code
    for (const other of this.#named) {
      if (['"', "'", '`'].some(quote => text.includes(`${quote}${other.name}${quote}`))) this.#note(other)
    }
  }

  /** Data as text; code is noted, and gives the same for any other. */
  #value(kind: CodePart['kind'], name: string, value: unknown): string {
    const code = codeText(value)
    if (code.sources.length === 0 && !code.isHidden) return code.text
    const alike = this.#code.filter(
      part => part.kind === kind && (part.name === name || part.name.startsWith(`${name} (`))
    )
    const unique = alike.length > 0 ? `${name} (${alike.length + 1})` : name
    this.#note({
      kind,
      name: unique,
      isNamed: false,
      code,
      ...(this.#at !== undefined && { transition: this.#at })
    })
    return 'code'
  }
}
