import { getInitialSnapshot, getNextSnapshot, setup, type SnapshotFrom } from 'xstate'
import type { ErrorCode } from '../../machines/protocol/errors.ts'
import type { ChartState } from '../../machines/protocol/states.ts'

/** An observation of a client: a message in reply, or a task's state. */
export type ProtocolEvent = { readonly type: 'reply.seen' } | { readonly type: `${ChartState}.seen` }

/** The moves of a client, by name. */
export type MoveName =
  | 'askForUnknownTasks'
  | 'sendBadRequests'
  | 'sendBadEnvelopes'
  | 'nameVersions'
  | 'nameExtensions'
  | 'useWhatIsNotOffered'
  | 'askForExtendedCard'
  | 'showNoCredentials'
  | 'listBadly'
  | 'send'
  | 'sendAtOnce'
  | 'stream'
  | 'replyAgain'
  | 'read'
  | 'readHistory'
  | 'nameAnotherContext'
  | 'follow'
  | 'answer'
  | 'cancel'
  | 'cancelAgain'
  | 'message'
  | 'messageByStream'
  | 'subscribe'
  | 'list'
  | 'keepWebhooks'
  | 'readAtLast'

/** The expected error of a move. */
export type ExpectedError = ErrorCode | 'no refusal'

/** The moves in a state. */
export type Moves = Readonly<Partial<Record<MoveName, ExpectedError>>>

const fine = 'no refusal'

/** The moves with every live task. */
const whileLive: Moves = { read: fine, nameAnotherContext: fine, keepWebhooks: fine }

/** The moves with every ended task. None may change the task, which is read again at the end. */
const whenOver: Moves = {
  read: fine,
  readHistory: fine,
  nameAnotherContext: fine,
  message: 'UnsupportedOperation',
  messageByStream: 'UnsupportedOperation',
  subscribe: 'UnsupportedOperation',
  list: fine,
  keepWebhooks: fine
}

/** The transitions to the end of a task. */
const ends = {
  'completed.seen': '#protocol.over.completed',
  'failed.seen': '#protocol.over.failed',
  'canceled.seen': '#protocol.over.canceled',
  'rejected.seen': '#protocol.over.rejected'
} as const

/** The transitions to the states of an accepted task. */
const begun = {
  'working.seen': '#protocol.live.working',
  'inputRequired.seen': '#protocol.live.inputRequired',
  'authRequired.seen': '#protocol.live.authRequired'
} as const

/**
 * The protocol of one task from the view of a client that knows nothing about the server (§4.1.3). Events are
 * observations; one that is not accepted is an illegal transition of the task. The `meta` of each state lists its moves
 * in order, with their expected errors.
 *
 * `unopened` is the state without a task; its moves need none. The last moves of the other states change the task.
 */
export const protocolMachine = setup({
  types: { events: {} as ProtocolEvent, tags: {} as 'over', meta: {} as { moves: Moves } }
}).createMachine({
  id: 'protocol',
  initial: 'unopened',
  states: {
    unopened: {
      meta: {
        moves: {
          askForUnknownTasks: 'TaskNotFound',
          useWhatIsNotOffered: fine,
          sendBadRequests: 'InvalidParams',
          sendBadEnvelopes: fine,
          nameVersions: 'VersionNotSupported',
          nameExtensions: fine,
          askForExtendedCard: fine,
          showNoCredentials: 'Unauthenticated',
          listBadly: 'InvalidParams',
          stream: fine,
          sendAtOnce: fine,
          send: fine
        }
      },
      on: { 'reply.seen': 'replied', 'submitted.seen': 'live', ...begun, ...ends }
    },
    // A message ends the exchange (§3.1.1): there is no task.
    replied: { meta: { moves: { replyAgain: fine } } },
    live: {
      initial: 'submitted',
      on: { ...begun, ...ends },
      states: {
        // Accepted, but not started: a task never returns to this state.
        submitted: { meta: { moves: { ...whileLive, cancel: fine, follow: fine } } },
        working: { meta: { moves: { ...whileLive, cancel: fine, follow: fine } } },
        inputRequired: { meta: { moves: { ...whileLive, readHistory: fine, answer: fine, cancel: fine } } },
        authRequired: { meta: { moves: { ...whileLive, readHistory: fine, answer: fine, cancel: fine } } }
      }
    },
    // An ended task never changes (§3.1.1): no event is accepted.
    over: {
      initial: 'completed',
      tags: 'over',
      states: {
        completed: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } },
        failed: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } },
        // Canceling twice equals canceling once (§3.3.1): the task is returned, or refused (§3.1.5).
        canceled: { meta: { moves: { ...whenOver, cancelAgain: fine, readAtLast: fine } } },
        rejected: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } }
      }
    }
  }
})

type ProtocolSnapshot = SnapshotFrom<typeof protocolMachine>

/** The chart before its first event. */
export function protocolStart(): ProtocolSnapshot {
  return getInitialSnapshot(protocolMachine)
}

/** The chart after an event. */
export function protocolStep(before: ProtocolSnapshot, event: ProtocolEvent): ProtocolSnapshot {
  return getNextSnapshot(protocolMachine, before, event)
}
