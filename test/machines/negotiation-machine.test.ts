import t, { type Test } from 'tap'
import { createActor, fromPromise, waitFor, type DoneActorEvent, type ErrorActorEvent, type SnapshotFrom } from 'xstate'
import type {
  Arrival,
  ContextRequest,
  Matter,
  NegotiationFact,
  NegotiationMachineEvent,
  NegotiationOutcome,
  Opinion,
  StandingOffer
} from '../../machines/negotiation-events.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import type { Part } from '../../machines/protocol/objects.ts'
import {
  configurationsOf,
  lastTurn,
  pathsOf,
  same,
  testChartPaths,
  type Chart
} from '../fixtures/charts/chart-paths.ts'
import { testCompiled } from '../fixtures/charts/compiled-paths.ts'

type Request = ContextRequest & { arrived: Arrival }
type Arriving = NegotiationMachineEvent | DoneActorEvent<Opinion> | ErrorActorEvent
type Decision = NegotiationOutcome extends infer Outcome
  ? Outcome extends unknown
    ? Omit<Outcome, 'request'>
    : never
  : never

const URI = 'urn:taskchart:extension:negotiation:1'
const EARLY = 1000
const EXPIRY = 5000
const words = { parts: [{ text: 'words' }], metadata: { a: 1 } }
const terms = { euros: 40 }
const proposed = { euros: 30 }
const never = () => new Promise<never>(() => {})
const offered: Opinion = { decision: 'offered', offer: { offerId: 'o1', terms, expiresAtMs: EXPIRY }, words }

const OPINIONS: Opinion[] = [
  offered,
  { decision: 'declined', words },
  { decision: 'replied', words },
  { decision: 'accepted' },
  { decision: 'accepted', terms: { euros: 5 } },
  { decision: 'rejected', reason: words },
  { decision: 'failed' }
]

/**
 * What a request may be while nobody waits: words, terms, an answer to the offer that stands or to another, in time or
 * when the offer has expired.
 */
const ARRIVALS: Arrival[] = [
  { atMs: EARLY },
  { atMs: EARLY, proposes: proposed },
  { atMs: EARLY, accepts: 'o1' },
  { atMs: EARLY, declines: 'o1' },
  { atMs: EARLY, accepts: 'o0' },
  { atMs: EXPIRY },
  { atMs: EXPIRY, accepts: 'o1' }
]

/** What it may be while another is answered. */
const LATER: Arrival[] = [
  { atMs: EARLY, proposes: proposed },
  { atMs: EARLY, accepts: 'o1' }
]

const machine = negotiationMachine.provide({ actors: { respond: fromPromise<Opinion, Matter>(never) } })
const chart = chartOf({ rounds: 3, waitingLimit: 1 })
const single = chartOf({ rounds: 1, waitingLimit: 1 })
const charts = [chartOf({ rounds: 2, waitingLimit: 1 }), single]

await t.test('on every path of the negotiation chart', async t => testChartPaths(t, charts))
await t.test('the compiled chart', async t => testCompiled(t, [single]))

await t.test('over all paths', async t => {
  await t.test('each request is answered once, in order of arrival, unless refused for room', async t => {
    same(
      t,
      charts.flatMap(chart =>
        pathsOf(chart).map(path => {
          const { context, facts } = walked(chart, path)
          const came = path.flatMap(event => (isRequest(event) ? [event.request.callId] : []))
          const crowded = idsOf(facts.filter(({ outcome }) => outcome.decision === 'crowded'))
          const answered = idsOf(facts.filter(({ outcome }) => outcome.decision !== 'crowded'))
          const waiting = context.requests.map(({ callId }) => callId)
          return {
            name: path.map(({ type }) => type).join(),
            found: [...answered, ...(isAgreeing(chart, path) ? waiting.slice(1) : waiting)],
            wanted: came.filter(id => !crowded.includes(id))
          }
        })
      )
    )
  })

  await t.test('there are never more offers than the limit, and one deal per offer', async t => {
    for (const chart of charts) {
      const { rounds } = Object(chart.input)
      t.ok(configurationsOf(chart).every(({ snapshot }) => snapshot.context.round <= rounds))
      t.ok(
        configurationsOf(chart).some(({ snapshot }) => snapshot.context.round === rounds),
        'and they are reached'
      )
    }
  })

  await t.test('the negotiation can become quiet from every state', async t => {
    same(
      t,
      charts.flatMap(chart =>
        configurationsOf(chart).map(({ way, snapshot }) => {
          const ends = snapshot.context.requests.flatMap(() => [off(), answered({ decision: 'failed' }), off()])
          return {
            name: `after ${way.length} events`,
            found: lastTurn(chart, [...way, ...ends]).value,
            wanted: 'quiet'
          }
        })
      )
    )
  })

  await t.test('every kind of event is accepted in some state', async t => {
    const accepted = new Set(
      charts.flatMap(chart => configurationsOf(chart).flatMap(({ legal }) => legal.map(({ type }) => type)))
    )
    t.strictSame([...accepted].toSorted(), [
      'client.withdrew',
      'deal.made',
      'deal.off',
      'request.received',
      'xstate.done.actor.respond',
      'xstate.error.actor.respond'
    ])
  })
})

await t.test('the author receives free words and proposals, with the open offer and the count', async t => {
  const matters: Matter[] = []
  const respond = fromPromise<Opinion, Matter>(({ input }) => (matters.push(input), Promise.resolve(offered)))
  const actor = createActor(negotiationMachine.provide({ actors: { respond } }), {
    input: { rounds: 5, waitingLimit: 1 }
  }).start()
  const asked = async (arrived: Arrival) => {
    actor.send(said(arrived) as NegotiationMachineEvent)
    await waitFor(actor, snapshot => snapshot.matches('quiet'))
    return matters.at(-1)
  }
  const { arrived: _, ...request } = requestOf({ atMs: EARLY })
  t.strictSame(await asked({ atMs: EARLY }), { request, round: 0 })
  const standing = { offerId: 'o1', round: 1, terms, expiresAtMs: EXPIRY }
  t.strictSame(await asked({ atMs: EARLY, proposes: proposed }), { request, round: 2, standing, proposal: proposed })
  t.strictSame(await asked({ atMs: EXPIRY }), { request, round: 0 }, 'an expired offer does not count')
})

await t.test('an offer', async t => {
  await t.test('is sent with the author’s words and as numbered data, and stays open', async t => {
    const made = wire({ offerId: 'o1', round: 1, terms, expiresAtMs: EXPIRY })
    check(
      t,
      [said({ atMs: EARLY }), answered(offered)],
      { decision: 'replied', reply: { ...words, parts: [...words.parts, made] } },
      { round: 1, standing: 'o1' }
    )
    const second = { ...offered, offer: { ...offered.offer, offerId: 'o2' } }
    check(t, [...open(), said({ atMs: EARLY, proposes: proposed }), answered(second)], undefined, {
      round: 3,
      standing: 'o2'
    })
  })

  await t.test('is accepted once by its id before it expires, and the negotiation restarts', async t => {
    const accept = said({ atMs: EXPIRY - 1, accepts: 'o1' })
    check(
      t,
      [...open(), accept],
      { decision: 'accepted', terms },
      { round: 1, standing: 'o1', value: { busy: 'agreeing' } }
    )
    check(t, [...open(), accept, made()], undefined, { round: 0 })
    check(t, [...open(), accept, made(), accept], gone(), { round: 0 })
  })

  await t.test('ends when the client gives up, and the negotiation restarts', async t => {
    check(t, [...open(), { type: 'client.withdrew' }], undefined, { round: 0 })
    check(t, [...open(), { type: 'client.withdrew' }, said({ atMs: EARLY, accepts: 'o1' })], gone(), { round: 0 })
    check(t, [said({ atMs: EARLY }), { type: 'client.withdrew' }, answered(offered)], undefined, {
      round: 1,
      standing: 'o1'
    })
  })

  await t.test('that two accept at once gives the second nothing', async t => {
    const facts = walked(chart, [
      ...open(),
      said({ atMs: EARLY, accepts: 'o1' }, 'r1'),
      said({ atMs: EARLY, accepts: 'o1' }, 'r2'),
      made()
    ]).facts
    t.strictSame(
      facts.slice(1).map(({ outcome }) => [outcome.request.callId, outcome.decision]),
      [
        ['r1', 'accepted'],
        ['r2', 'replied']
      ]
    )
  })

  await t.test('stays open if its task has no room', async t => {
    const accept = said({ atMs: EARLY, accepts: 'o1' })
    check(t, [...open(), accept, off()], undefined, { round: 1, standing: 'o1' })
    check(
      t,
      [...open(), accept, off(), accept],
      { decision: 'accepted', terms },
      { round: 1, standing: 'o1', value: { busy: 'agreeing' } }
    )
  })

  await t.test('that has expired is accepted neither by its id nor by the author', async t => {
    check(t, [...open(), said({ atMs: EXPIRY, accepts: 'o1' })], gone(), { round: 0 })
    check(t, [...open(), said({ atMs: EXPIRY }), answered({ decision: 'accepted' })], gone(), { round: 0 })
  })

  await t.test('that is not the open one is neither accepted nor declined, and this is reported', async t => {
    const still = {
      decision: 'replied' as const,
      reply: {
        parts: [
          { text: 'This offer is not open any more. The open offer is:' },
          wire({ offerId: 'o1', round: 1, terms, expiresAtMs: EXPIRY })
        ]
      }
    }
    check(t, [...open(), said({ atMs: EARLY, accepts: 'o0' })], still, { round: 1, standing: 'o1' })
    check(t, [...open(), said({ atMs: EARLY, declines: 'o0' })], still, { round: 1, standing: 'o1' })
    check(t, [said({ atMs: EARLY, accepts: 'o1' })], gone(), { round: 0 })
  })

  await t.test('is declined by its id, and closes', async t => {
    check(t, [...open(), said({ atMs: EARLY, declines: 'o1' })], replied('The offer is declined. There is no deal.'), {
      round: 0
    })
    check(t, [...open(), said({ atMs: EARLY, declines: 'o1' }), said({ atMs: EARLY, accepts: 'o1' })], gone(), {
      round: 0
    })
  })
})

await t.test('the author', async t => {
  const proposal = said({ atMs: EARLY, proposes: proposed })

  await t.test('accepts terms of its own, else the proposed, else the open, else none', async t => {
    const agreeing = { value: { busy: 'agreeing' } }
    check(
      t,
      [...open(), proposal, answered({ decision: 'accepted', terms: { euros: 5 } })],
      { decision: 'accepted', terms: { euros: 5 } },
      { round: 1, standing: 'o1', ...agreeing }
    )
    check(
      t,
      [...open(), proposal, answered({ decision: 'accepted' })],
      { decision: 'accepted', terms: proposed },
      { round: 1, standing: 'o1', ...agreeing }
    )
    check(
      t,
      [...open(), said({ atMs: EARLY }), answered({ decision: 'accepted' })],
      { decision: 'accepted', terms },
      { round: 1, standing: 'o1', ...agreeing }
    )
    check(t, [said({ atMs: EARLY }), answered({ decision: 'accepted' })], gone(), { round: 0 })
  })

  await t.test('opens a rejected task, declines finally, or only talks', async t => {
    check(
      t,
      [...open(), proposal, answered({ decision: 'rejected', reason: words })],
      { decision: 'rejected', reason: words },
      { round: 1, standing: 'o1', value: { busy: 'agreeing' } }
    )
    check(
      t,
      [...open(), proposal, answered({ decision: 'declined', words })],
      { decision: 'replied', reply: words },
      { round: 0 }
    )
    check(
      t,
      [...open(), proposal, answered({ decision: 'replied', words })],
      { decision: 'replied', reply: words },
      { round: 2, standing: 'o1' }
    )
    check(
      t,
      [...open(), said({ atMs: EARLY }), answered({ decision: 'replied', words })],
      { decision: 'replied', reply: words },
      { round: 1, standing: 'o1' }
    )
  })

  await t.test('that fails fails only that request: the offer stays open without the proposal', async t => {
    for (const end of [answered({ decision: 'failed' }), failure()]) {
      check(t, [...open(), proposal, end], { decision: 'failed' }, { round: 1, standing: 'o1' })
    }
  })
})

await t.test('after the maximum number of offers', async t => {
  const over = (rounds: number) => replied(`There is no deal: the offer limit of ${rounds} is reached.`)

  await t.test('a counter-offer is declined in words, and the negotiation restarts', async t => {
    const full = [...open(), said({ atMs: EARLY, proposes: proposed }), answered(offered)]
    check(t, full, undefined, { round: 3, standing: 'o1' })
    check(t, [...full, said({ atMs: EARLY, proposes: proposed })], over(3), { round: 0 })
    check(
      t,
      [...full, said({ atMs: EARLY, accepts: 'o1' })],
      { decision: 'accepted', terms },
      { round: 3, standing: 'o1', value: { busy: 'agreeing' } }
    )
  })

  await t.test('the agent cannot offer either, even if the client’s proposal was the last', async t => {
    check(t, [said({ atMs: EARLY, proposes: proposed }), answered(offered)], over(1), { round: 0 }, single)
    check(t, [...open(), said({ atMs: EARLY }), answered(offered)], over(1), { round: 0 }, single)
    check(
      t,
      [said({ atMs: EARLY, proposes: proposed }), answered({ decision: 'accepted' })],
      { decision: 'accepted', terms: proposed },
      { round: 0, value: { busy: 'agreeing' } },
      single
    )
  })
})

await t.test('requests during an answer wait, and one over the limit is refused', async t => {
  const path = [
    said({ atMs: EARLY }, 'r1'),
    said({ atMs: EARLY, proposes: proposed }, 'r2'),
    said({ atMs: EARLY }, 'r3')
  ]
  check(t, path, { decision: 'crowded' }, { round: 0, value: { busy: 'responding' } })
  const facts = walked(chart, [
    ...path,
    answered({ decision: 'replied', words }),
    answered({ decision: 'accepted' })
  ]).facts
  t.strictSame(
    facts.map(({ outcome }) => [outcome.request.callId, outcome.decision]),
    [
      ['r3', 'crowded'],
      ['r1', 'replied'],
      ['r2', 'accepted']
    ]
  )
})

await t.test('a negotiation without logic fails its requests', async t => {
  const facts: NegotiationFact[] = []
  const actor = createActor(negotiationMachine, { input: { rounds: 5, waitingLimit: 1 } })
  actor.on('request.decided', fact => facts.push(fact))
  actor.start().send(said({ atMs: EARLY }) as NegotiationMachineEvent)
  await waitFor(actor, snapshot => snapshot.matches('quiet'))
  t.match(facts, [{ outcome: { decision: 'failed' } }])
})

/** Checks what was told of the last request, if that is said, and what the negotiation is now. */
function check(
  t: Test,
  path: readonly Arriving[],
  decision: Decision | undefined,
  { round, standing = null, value = 'quiet' }: { round: number; standing?: string | null; value?: unknown },
  on = chart
): void {
  const { facts, ...turn } = walked(on, path)
  t.strictSame(
    { round: turn.context.round, standing: turn.context.standing?.offerId ?? null, value: turn.value },
    { round, standing, value }
  )
  const { request: _, ...found } = facts.at(-1)?.outcome ?? { request: undefined }
  if (decision) t.strictSame(found, decision)
}

/** What an actor has told on a path, and what it is at its end. */
function walked(
  on: Chart,
  path: readonly { type: string }[]
): { facts: NegotiationFact[]; context: SnapshotFrom<typeof machine>['context']; value: unknown } {
  const facts: NegotiationFact[] = []
  const actor = createActor(machine, { input: Object(on.input) })
  actor.on('request.decided', fact => facts.push(fact))
  actor.start()
  for (const event of path) actor.send(event as NegotiationMachineEvent)
  const { context, value } = actor.getSnapshot()
  return { facts, context, value }
}

function chartOf(input: { rounds: number; waitingLimit: number }): Chart {
  return {
    machine,
    input,
    events: ({ context, children }) => arriving(context.requests, Object.keys(children)),
    memory: ({ context: { round, standing, requests } }) => [round, standing, requests]
  }
}

/**
 * What may come: each kind of request under the next free id, the news of a deal, and the ends of the author's logic
 * while it runs.
 */
function arriving(requests: readonly Request[], children: readonly string[]): Arriving[] {
  const id = ['r1', 'r2', 'r3'].find(id => requests.every(({ callId }) => callId !== id)) ?? 'r0'
  return [
    ...(requests.length === 0 ? ARRIVALS : LATER).map(arrived => said(arrived, id)),
    made(),
    off(),
    { type: 'client.withdrew' },
    ...(children.includes('respond') ? [...OPINIONS.map(answered), failure()] : [answered(offered)])
  ]
}

/** An offer of the agent's that stands. */
function open(): Arriving[] {
  return [said({ atMs: EARLY }), answered(offered)]
}

function said(arrived: Arrival, id = 'r1'): Arriving {
  return { type: 'request.received', request: requestOf(arrived, id) }
}

function requestOf(arrived: Arrival, id = 'r1'): Request {
  return {
    callId: id,
    taskId: `t${id}`,
    message: { messageId: `m${id}`, role: 'ROLE_USER', parts: [{ text: 'words' }] },
    arrived
  }
}

function answered(output: Opinion): DoneActorEvent<Opinion> {
  return { type: 'xstate.done.actor.respond', actorId: 'respond', output }
}

function failure(): ErrorActorEvent {
  return { type: 'xstate.error.actor.respond', actorId: 'respond', error: new Error('secret') }
}

function made(): Arriving {
  return { type: 'deal.made' }
}

function off(): Arriving {
  return { type: 'deal.off' }
}

function wire({ expiresAtMs, ...offer }: StandingOffer): Part {
  return { data: { [URI]: { offer: { ...offer, expiresAt: new Date(expiresAtMs).toISOString() } as never } } }
}

function replied(text: string): Decision {
  return { decision: 'replied', reply: { parts: [{ text }] } }
}

function gone(): Decision {
  return replied('This offer is not open any more.')
}

function isRequest(event: { type: string }): event is Extract<NegotiationMachineEvent, { type: 'request.received' }> {
  return event.type === 'request.received'
}

function isAgreeing(on: Chart, path: readonly { type: string }[]): boolean {
  return JSON.stringify(walked(on, path).value).includes('agreeing')
}

function idsOf(facts: readonly NegotiationFact[]): string[] {
  return facts.map(({ outcome }) => outcome.request.callId)
}
