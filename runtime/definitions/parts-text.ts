import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type {
  WrittenAction,
  WrittenActor,
  WrittenChart,
  WrittenGuard,
  WrittenState,
  WrittenTransition
} from '../xstate/written-chart.ts'
import { answerFormOf, type ChartParts, type CodePart, type Decisive, pathOf } from './chart-parts.ts'

/** The parts of a chart as JSON: states and code by their numbers, and no code. */
export interface PartsText {
  readonly id: string
  readonly states: readonly StateText[]
  readonly code: readonly CodePart[]
  readonly named: Readonly<Record<'actors' | 'guards' | 'actions' | 'delays', readonly number[]>>
  readonly context: number
  readonly hasOpenNames: boolean
  readonly actorCharts: readonly string[]
}

/** A state: others by their numbers, and its actions by their names alone. */
type StateText = Omit<
  WrittenState,
  | 'parent'
  | 'states'
  | 'initial'
  | 'initialActions'
  | 'output'
  | 'historyTarget'
  | 'meta'
  | 'entry'
  | 'exit'
  | 'invoke'
  | 'transitions'
  | 'route'
> & {
  readonly states: readonly number[]
  readonly initial: readonly number[]
  readonly hasHistoryTarget: boolean
  readonly prompt?: JsonValue
  readonly hasPromptCode: boolean
  readonly hasSchema: boolean
  readonly schema?: Record<string, unknown>
  readonly entry: readonly ActionText[]
  readonly exit: readonly ActionText[]
  readonly invoke: readonly Pick<WrittenActor, 'id' | 'hasOwnId' | 'src' | 'storedSrc'>[]
  readonly transitions: readonly TransitionText[]
  readonly active: DecisiveText
  readonly ways: DecisiveText
}

type ActionText = Pick<WrittenAction, 'kind' | 'name'>

type TransitionText = Pick<WrittenTransition, 'name' | 'event' | 'member' | 'delay' | 'reenter' | 'description'> & {
  readonly targets: readonly number[]
  readonly guard?: GuardText
  readonly actions: readonly ActionText[]
}

type GuardText =
  | { readonly kind: 'named'; readonly name: string; readonly params?: JsonValue }
  | { readonly kind: 'inline'; readonly name: string }
  | { readonly kind: 'and' | 'or' | 'not'; readonly guards: readonly GuardText[] }

interface DecisiveText {
  readonly shape: string
  readonly code: readonly number[]
}

/** Parts of a chart as JSON. */
export function partsToText({ chart, states, context, hasOpenNames, actorCharts, ...parts }: ChartParts): PartsText {
  const stateNumbers = new Map(chart.states.map((state, i) => [state, i]))
  const numberOf = (state: WrittenState) => stateNumbers.get(state) as number
  const code = new Map<CodePart, number>()
  const codeNumber = (part: CodePart) => {
    const number = code.get(part) ?? code.size
    code.set(part, number)
    return number
  }
  const decisive = ({ shape, code }: Decisive): DecisiveText => ({ shape, code: code.map(codeNumber) })
  return {
    id: chart.id,
    states: Array.from(states.values(), ({ state, active, entry }) => ({
      ...stateText(state, numberOf),
      active: decisive(active),
      ways: decisive(entry)
    })),
    named: {
      actors: parts.actors.map(codeNumber),
      guards: parts.guards.map(codeNumber),
      actions: parts.actions.map(codeNumber),
      delays: parts.delays.map(codeNumber)
    },
    context: codeNumber(context),
    code: [...code.keys()],
    hasOpenNames,
    actorCharts: [...actorCharts]
  }
}

function stateText(state: WrittenState, numberOf: (state: WrittenState) => number): Omit<StateText, 'active' | 'ways'> {
  const { id, hasOwnId, key, path, type, history, tags, description, meta = {} } = state
  const { prompt } = meta
  const form = answerFormOf(state)
  return {
    id,
    hasOwnId,
    key,
    path,
    type,
    history,
    tags,
    description,
    states: state.states.map(numberOf),
    initial: state.initial.map(numberOf),
    hasHistoryTarget: state.historyTarget !== undefined,
    ...(typeof prompt !== 'function' && prompt !== undefined && { prompt: prompt as JsonValue }),
    hasPromptCode: typeof prompt === 'function',
    hasSchema: meta['schema'] !== undefined,
    ...(form?.schema && { schema: form.schema }),
    entry: state.entry.map(actionText),
    exit: state.exit.map(actionText),
    invoke: state.invoke.map(({ id, hasOwnId, src, storedSrc }) => ({ id, hasOwnId, src, storedSrc })),
    transitions: state.transitions.map(
      ({ name, event, member, delay, reenter, description, targets, guard, actions }) => ({
        name,
        event,
        member,
        delay,
        reenter,
        description,
        targets: targets.map(numberOf),
        ...(guard && { guard: guardText(guard) }),
        actions: actions.map(actionText)
      })
    )
  }
}

function actionText({ kind, name }: WrittenAction): ActionText {
  return { kind, name }
}

function guardText(guard: WrittenGuard): GuardText {
  if (guard.kind === 'inline') return { kind: 'inline', name: guard.name }
  if (guard.kind !== 'named') return { kind: guard.kind, guards: guard.guards.map(guardText) }
  const { name, params } = guard
  return { kind: 'named', name, ...(params !== undefined && typeof params !== 'function' && { params: shown(params) }) }
}

/** Params as far as the name of a guard has them: one level, without code. */
function shown(params: unknown): JsonValue {
  const member = (value: unknown): JsonValue =>
    value === null ? null : typeof value === 'object' || typeof value === 'function' ? {} : (value as JsonValue)
  if (Array.isArray(params)) return params.map(member)
  if (!isObject(params)) return member(params)
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, member(value)]))
}

/** The parts of a chart that was stored. It has no code. */
export function partsFromText({ id, states: texts, code, named, context, ...parts }: PartsText): ChartParts {
  const states = texts.map(draftOf)
  const at = (number: number) => states[number] as Draft
  texts.forEach((text, i) => connect(at(i), text, at))
  const all: readonly WrittenState[] = states
  const chart: WrittenChart = {
    id,
    context: undefined,
    output: undefined,
    options: undefined,
    root: at(0),
    states: all,
    transitions: all.flatMap(({ transitions }) => transitions)
  }
  const codeAt = (number: number) => code[number] as CodePart
  const decisive = ({ shape, code }: DecisiveText): Decisive => ({ shape, code: code.map(codeAt) })
  return {
    chart,
    states: new Map(
      texts.map(({ active, ways }, i) => [
        pathOf(at(i)),
        { state: at(i), active: decisive(active), entry: decisive(ways) }
      ])
    ),
    actors: named.actors.map(codeAt),
    guards: named.guards.map(codeAt),
    actions: named.actions.map(codeAt),
    delays: named.delays.map(codeAt),
    context: codeAt(context),
    hasOpenNames: parts.hasOpenNames,
    actorCharts: new Set(parts.actorCharts)
  }
}

/** A state whose connections to others are not known yet. */
type Draft = { -readonly [Member in keyof WrittenState]: WrittenState[Member] }

function draftOf(text: StateText): Draft {
  const { id, hasOwnId, key, path, type, history, tags, description, hasHistoryTarget, entry, exit } = text
  return {
    id,
    hasOwnId,
    key,
    path,
    type,
    parent: undefined,
    states: [],
    initial: [],
    initialActions: [],
    output: undefined,
    history,
    historyTarget: hasHistoryTarget ? '' : undefined,
    tags,
    description,
    meta: metaOf(text),
    entry: entry.map(actionOf),
    exit: exit.map(actionOf),
    invoke: [],
    transitions: [],
    route: undefined
  }
}

/** The form of a question that was stored: it validates nothing. */
const STORED_SCHEMA: StandardSchema<unknown> = {
  '~standard': { version: 1, vendor: 'taskchart', validate: value => ({ value }) }
}

function metaOf({ prompt, hasPromptCode, hasSchema, schema }: StateText): Record<string, unknown> {
  return {
    ...(hasPromptCode ? { prompt: () => '' } : prompt !== undefined && { prompt }),
    ...(hasSchema && { schema: STORED_SCHEMA }),
    ...(schema && { jsonSchema: schema })
  }
}

function connect(state: Draft, text: StateText, at: (number: number) => Draft): void {
  state.states = text.states.map(at)
  for (const child of text.states) at(child).parent = state
  state.initial = text.initial.map(at)
  state.transitions = text.transitions.map(({ targets, guard, actions, ...transition }): WrittenTransition => ({
    ...transition,
    delay: transition.delay,
    description: transition.description,
    source: state,
    targets: targets.map(at),
    guard: guard && guardOf(guard),
    actions: actions.map(actionOf)
  }))
  state.invoke = text.invoke.map(({ id, hasOwnId, src, storedSrc }) => ({
    id,
    hasOwnId,
    src,
    storedSrc,
    written: undefined,
    onDone: [],
    onError: [],
    onSnapshot: []
  }))
}

function actionOf({ kind, name }: ActionText): WrittenAction {
  return { kind, name, written: undefined }
}

function guardOf(guard: GuardText): WrittenGuard {
  if (guard.kind === 'named') return guard
  if (guard.kind === 'inline') return { ...guard, run: () => true }
  return { kind: guard.kind, guards: guard.guards.map(guardOf) }
}
