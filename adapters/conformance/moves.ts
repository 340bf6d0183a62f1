import type { ErrorCode } from '../../machines/protocol/errors.ts'
import { list } from './moves/list.ts'
import { answer, cancel, follow } from './moves/live.ts'
import { replyAgain, send, sendAtOnce, stream } from './moves/opening.ts'
import { cancelAgain, keepWebhooks, message, messageByStream, nameAnotherContext, read, readAtLast, readHistory, subscribe } from './moves/over.ts'
import { askForExtendedCard, askForUnknownTasks, listBadly, nameExtensions, nameVersions, sendBadEnvelopes, sendBadRequests, showNoCredentials, useWhatIsNotOffered } from './moves/unopened.ts'
import type { MoveName } from './protocol.machine.ts'
import type { SubjectUnderTest } from './subject-under-test.ts'

/** Makes a move with a subject, and keeps what comes of it. `wanted`: what the chart says that it has to be refused with. */
type Move = (subject: SubjectUnderTest, wanted: ErrorCode) => Promise<void>

/** How each move of the chart is made. */
export const MOVES: Readonly<Record<MoveName, Move>> = {
  askForUnknownTasks, useWhatIsNotOffered, sendBadRequests, sendBadEnvelopes, nameVersions, nameExtensions, askForExtendedCard, showNoCredentials, listBadly,
  stream, sendAtOnce, send, replyAgain,
  read, readHistory, nameAnotherContext, follow, answer, cancelAgain, message, messageByStream, subscribe, list, keepWebhooks, readAtLast,
  cancel: (subject, wanted) => (subject.course.isOver ? cancelOver(subject, wanted) : cancel(subject))
}

async function cancelOver({ trial, id }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  await trial.refused(77, wanted, 'CancelTask', { id })
}
