import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { parseType } from '../../machines/xstate-names.ts'
import { messageOf } from '../authoring/checked-words.ts'
import { publishedSchema } from '../authoring/input-schema.ts'
import { ANSWERS, ASKING, hears, type WorkTag } from '../authoring/question-guards.ts'
import type { WorkMeta } from '../authoring/setup-work.ts'
import { contextLoss } from '../primitives/json.ts'
import { closestName } from '../primitives/options.ts'
import { refuseOtherActors } from '../xstate/other-majors.ts'
import { statesWithin, type WrittenChart, writtenChart, type WrittenState } from '../xstate/written-chart.ts'

const ENDING: readonly string[] = ['failed', 'rejected'] satisfies WorkTag[]
const TAGS = [...ASKING, ...ENDING]

const META = Object.keys({ prompt: true, reason: true, schema: true, jsonSchema: true } satisfies Record<
  keyof WorkMeta,
  true
>)

/**
 * Refuses a chart with a state that cannot work as written. Throws TypeError that names the state and says what to
 * write instead.
 */
export function checkChart(machine: AnyStateMachine): void {
  refuseOtherActors(machine)
  const chart = writtenChart(machine)
  const loss = contextLoss(chart.context, undefined)
  if (loss !== undefined) throw new TypeError(`The chart ${chart.id} has a context that cannot be stored: ${loss}`)
  for (const state of chart.states) {
    const fault =
      invokeFault(state, machine) ??
      nameFault(state, machine) ??
      tagFault(state) ??
      endFault(state) ??
      metaFault(state, chart) ??
      answerFault(state, machine)
    if (fault !== undefined) throw new TypeError(`The state ${nameOf(state, chart)} ${fault}`)
  }
}

/** Charts that the author has been warned about, to warn once each. */
const warned = new WeakSet<AnyStateMachine>()

/** Warns on the console about states that a task can leave only by a cancel. Such a chart runs all the same. */
export function warnOfChart(machine: AnyStateMachine): void {
  if (warned.has(machine)) return
  warned.add(machine)
  const chart = writtenChart(machine)
  for (const state of chart.states) {
    const doubt = wayOnDoubt(state)
    if (doubt !== undefined) console.warn(`taskchart: The state ${nameOf(state, chart)} ${doubt}`)
  }
}

function wayOnDoubt(state: WrittenState): string | undefined {
  if (state.type !== 'atomic') return undefined
  const asks = ASKING.find(tag => state.tags.includes(tag))
  const answer = asks === 'auth-required' ? 'authorization.received' : 'message.received'
  const others = around(state)
  if (!others.some(each => leaves(each, state))) {
    return asks === undefined
      ? "cannot be left: it has no transition for an event, timer or actor. Its task works until it is canceled. Add a transition to another state, or type: 'final'."
      : `asks, but no answer leaves it: its task waits until it is canceled. Add a target: on: { '${answer}': 'next' }.`
  }
  if (asks === undefined || others.some(handlesAnswer)) return undefined
  return `asks, but handles no answer of the client: only the agent's own events leave it. Add on: { '${answer}': … }, or on: { '${answer}': {} } if that is meant.`
}

/** Whether a state handles an answer, or can be left without an event of the agent's. */
function handlesAnswer({ transitions, invoke }: WrittenState): boolean {
  return (
    invoke.length > 0 || transitions.some(({ event, delay }) => event === '' || delay !== undefined || isAnswer(event))
  )
}

function isAnswer(event: string): boolean {
  return ANSWERS.some(type => hears(event, type))
}

/** Whether a transition of `source` leaves `state`, which is `source` itself, nested in it, or active in parallel. */
function leaves(source: WrittenState, state: WrittenState): boolean {
  const isOutside = (path: readonly string[]) =>
    path.length < state.path.length && path.every((key, i) => key === state.path[i])
  return source.transitions.some(({ event, targets }) => {
    const { kind, of } = parseType(event) ?? {}
    // The done event of an enclosing state comes only after `state` has been left.
    if (kind === 'done' && of === 'state' && isOutside(source.path)) return false
    return targets.some(to => to !== state && isOutside(commonPath(source, to)))
  })
}

function commonPath(source: WrittenState, to: WrittenState): readonly string[] {
  if (source === to) return source.path.slice(0, -1)
  const end = source.path.findIndex((key, i) => key !== to.path[i])
  return end < 0 ? source.path : source.path.slice(0, end)
}

function nameOf({ path }: WrittenState, { id }: WrittenChart): string {
  return [id, ...path].join('.')
}

/** Refuses inline or missing logic: a restart finds logic only by its name. */
function invokeFault({ invoke }: WrittenState, { implementations }: AnyStateMachine): string | undefined {
  for (const { src } of invoke) {
    if (src === undefined)
      return "invokes logic without a name. Name it: setupWork({ actors: { paint: … } }), and invoke: { src: 'paint' }."
    if (!Object.hasOwn(implementations.actors as Record<string, AnyActorLogic>, src))
      return `invokes ${src}, but there is no such actor. Add it: setupWork({ actors: { ${src}: fromPromise(…) } }).`
  }
  return undefined
}

/** Refuses an undefined delay, which XState would treat as 0 ms. */
function nameFault({ transitions }: WrittenState, { implementations }: AnyStateMachine): string | undefined {
  const { delay } =
    transitions.find(({ delay }) => typeof delay === 'string' && !Object.hasOwn(implementations.delays, delay)) ?? {}
  return delay === undefined
    ? undefined
    : `uses the delay ${delay}, which is not defined. Define it: setupWork({ delays: { ${delay}: 1000 } }).`
}

function tagFault({ tags, type }: WrittenState): string | undefined {
  const [asks, ends] = [ASKING, ENDING].map(all => all.filter(tag => tags.includes(tag))) as [string[], string[]]
  for (const tag of tags) {
    const meant = TAGS.includes(tag) ? undefined : closestName(tag, TAGS)
    if (meant !== undefined) return `is tagged '${tag}'. Is '${meant}' meant?`
  }
  if (asks.length === 2)
    return 'is tagged input-required and auth-required: it can ask for one of them. Make it two states.'
  if (ends.length === 2) return 'is tagged failed and rejected: a task ends in one of them. Make it two states.'
  if (asks.length > 0 && ends.length > 0)
    return `is tagged ${asks[0]} and ${ends[0]}, but a state that asks is no end. Make it two states.`
  if (asks.length > 0 && type === 'final')
    return `is final, and tagged ${asks[0]}, but a final state receives no answer. Leave out type: 'final', and add a transition for 'message.received'.`
  if (ends.length > 0 && type !== 'final')
    return `is tagged ${ends[0]}, but is not final: the task would not end there. Add type: 'final'.`
  return undefined
}

/** Refuses behaviour in a state in which the chart has ended. */
function endFault({ type, parent, transitions, invoke }: WrittenState): string | undefined {
  if (type !== 'final' || parent?.parent || parent?.type !== 'compound') return undefined
  const member =
    (['on', 'after', 'always'] as const).find(member => transitions.some(one => one.member === member)) ??
    (invoke.length > 0 ? 'invoke' : undefined)
  return (
    member &&
    `is final: the chart has ended there, and its ${member} is ignored. Leave it out, or make it a state that is not final.`
  )
}

function metaFault(state: WrittenState, chart: WrittenChart): string | undefined {
  const { meta, tags } = state
  const { prompt, reason, schema, jsonSchema }: WorkMeta = meta ?? {}
  const asks = ASKING.some(tag => tags.includes(tag))
  const ends = ENDING.some(tag => tags.includes(tag))
  const misspelled = Object.keys(meta ?? {})
    .map(name => [name, closestName(name, META)])
    .find(([name, meant]) => meant !== undefined && meant !== name)
  if (misspelled && (asks || ends)) return `has ${misspelled[0]} in its meta. Is ${misspelled[1]} meant?`
  for (const [member, value] of Object.entries({ prompt, schema, jsonSchema })) {
    if (value !== undefined && !asks)
      return `has a ${member} in its meta, but asks nothing. Tag it: tags: 'input-required'.`
  }
  if (reason !== undefined && !ends)
    return "has a reason in its meta, but is not tagged failed or rejected. Tag it: type: 'final', tags: 'failed', or 'rejected'."
  const name = `of the state ${nameOf(state, chart)}`
  publishedSchema({ schema, jsonSchema }, { schema: `schema ${name}`, jsonSchema: `jsonSchema ${name}` })
  return [prompt, reason].every(isSayable)
    ? undefined
    : "has an invalid prompt or reason in its meta. Give text, a part, parts, or a function of the context: prompt: 'Which day?'."
}

function isSayable(words: unknown): boolean {
  if (words === undefined || typeof words === 'function') return true
  try {
    return messageOf(words) !== undefined
  } catch {
    return false
  }
}

/** Refuses a state that asks, if no state handles the answer and nothing else leaves it. */
function answerFault(state: WrittenState, machine: AnyStateMachine): string | undefined {
  const events = state.transitions.map(({ event }) => event)
  const misspelled = events.find(name => closestName(name, ANSWERS) !== undefined && !ANSWERS.includes(name))
  if (misspelled !== undefined) return `handles '${misspelled}'. Is '${closestName(misspelled, ANSWERS)}' meant?`
  const asks = ASKING.find(tag => state.tags.includes(tag))
  if (asks === undefined) return undefined
  const mayHear = sendsToItself(machine)
  if (around(state).some(each => goesOn(each, mayHear))) return undefined
  return `asks, but handles no answer. Add on: { '${asks === 'auth-required' ? 'authorization.received' : 'message.received'}': … } to it.`
}

/**
 * The states that may be active with this one: itself, nested and enclosing states, and those of an enclosing parallel
 * state.
 */
function around(state: WrittenState): WrittenState[] {
  const outer: WrittenState[] = []
  for (let each = state.parent; each; each = each.parent) outer.push(each)
  return [...outer, ...statesWithin(outer.findLast(({ type }) => type === 'parallel') ?? state)]
}

/** Whether a chart may send events to itself: by its actors, its actions and its delays. */
function sendsToItself(machine: AnyStateMachine): boolean {
  return (
    Object.keys(machine.implementations.actors).length > 0 ||
    writtenChart(machine).states.some(
      ({ entry, transitions }) => entry.length > 0 || transitions.some(({ delay }) => delay !== undefined)
    )
  )
}

/** Whether the state handles an answer, an actor or an eventless transition; or any other event, if it may get one. */
function goesOn({ transitions, invoke }: WrittenState, mayHear: boolean): boolean {
  return invoke.length > 0 || transitions.some(({ event }) => event === '' || mayHear || isAnswer(event))
}
