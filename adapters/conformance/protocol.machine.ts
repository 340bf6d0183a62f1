import { setup } from 'xstate'
import type { ErrorCode } from '../../machines/protocol/errors.ts'
import type { ChartState } from '../../machines/protocol/states.ts'

/** What a client of a server sees: a message in reply, or a task in a state. */
export type ProtocolEvent = { readonly type: 'reply.seen' } | { readonly type: `${ChartState}.seen` }

/** Something that a client can do, each the name of a trial. */
export type MoveName =
  | 'askForUnknownTasks' | 'sendBadRequests' | 'sendBadEnvelopes' | 'nameVersions' | 'nameExtensions' | 'useWhatIsNotOffered' | 'askForExtendedCard' | 'showNoCredentials' | 'listBadly'
  | 'send' | 'sendAtOnce' | 'stream'
  | 'replyAgain' | 'read' | 'readHistory' | 'nameAnotherContext' | 'follow' | 'answer' | 'cancel' | 'cancelAgain' | 'message' | 'messageByStream' | 'subscribe' | 'list' | 'keepWebhooks' | 'readAtLast'

/** What a move has to be refused with, if it has to be. */
export type Wanted = ErrorCode | 'no refusal'

/** What is to be tried in a state. */
export type Moves = Readonly<Partial<Record<MoveName, Wanted>>>

const fine = 'no refusal'

/** What may be tried of every task that has not ended. */
const whileLive: Moves = { read: fine, nameAnotherContext: fine, keepWebhooks: fine }

/** What may be tried of every task that has ended. Nothing of it may change the task, which is read again at last. */
const whenOver: Moves = {
  read: fine, readHistory: fine, nameAnotherContext: fine,
  message: 'UnsupportedOperation', messageByStream: 'UnsupportedOperation', subscribe: 'UnsupportedOperation',
  list: fine, keepWebhooks: fine
}

/** How a task ends, from wherever it is. */
const ends = {
  'completed.seen': '#protocol.over.completed',
  'failed.seen': '#protocol.over.failed',
  'canceled.seen': '#protocol.over.canceled',
  'rejected.seen': '#protocol.over.rejected'
} as const

/** Where a task may be that was taken on. */
const begun = { 'working.seen': '#protocol.live.working', 'inputRequired.seen': '#protocol.live.inputRequired', 'authRequired.seen': '#protocol.live.authRequired' } as const

/**
 * A2A as a client sees one task of a server of which nothing is known (§4.1.3). Events are what was seen; where one is not taken, the
 * task did what no task may. The `meta` of each state says what is to be tried there, in this order, and what has to come of it.
 *
 * `unopened` is before any task: what is tried there needs none. The last moves of the other states take the task on.
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
          askForUnknownTasks: 'TaskNotFound', useWhatIsNotOffered: fine, sendBadRequests: 'InvalidParams', sendBadEnvelopes: fine, nameVersions: 'VersionNotSupported',
          nameExtensions: fine, askForExtendedCard: fine, showNoCredentials: 'Unauthenticated', listBadly: 'InvalidParams',
          stream: fine, sendAtOnce: fine, send: fine
        }
      },
      on: { 'reply.seen': 'replied', 'submitted.seen': 'live', ...begun, ...ends }
    },
    // A message is all (§3.1.1): no task is there to be seen.
    replied: { meta: { moves: { replyAgain: fine } } },
    live: {
      initial: 'submitted',
      on: { ...begun, ...ends },
      states: {
        // A task was taken on, and not begun: no task comes back here.
        submitted: { meta: { moves: { ...whileLive, cancel: fine, follow: fine } } },
        working: { meta: { moves: { ...whileLive, cancel: fine, follow: fine } } },
        inputRequired: { meta: { moves: { ...whileLive, readHistory: fine, answer: fine, cancel: fine } } },
        authRequired: { meta: { moves: { ...whileLive, readHistory: fine, answer: fine, cancel: fine } } }
      }
    },
    // A task that has ended never changes (§3.1.1): nothing is taken.
    over: {
      initial: 'completed',
      tags: 'over',
      states: {
        completed: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } },
        failed: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } },
        // To be canceled twice is as once (§3.3.1): the task may be given, or refused (§3.1.5).
        canceled: { meta: { moves: { ...whenOver, cancelAgain: fine, readAtLast: fine } } },
        rejected: { meta: { moves: { ...whenOver, cancel: 'TaskNotCancelable', readAtLast: fine } } }
      }
    }
  }
})
