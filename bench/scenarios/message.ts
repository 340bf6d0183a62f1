import { wordsOf, type Errand } from '../errands.ts'

let lastMessageId = 0

/** Parameters of SendMessage: a new message, which opens a new task in a new context, or answers the task of an id. */
export function messageParams(errand: Errand, taskId?: string): { readonly message: object } {
  lastMessageId += 1
  const message = { messageId: `message-${lastMessageId}`, role: 'ROLE_USER', parts: [{ text: wordsOf(errand) }] }
  return { message: taskId === undefined ? message : { ...message, taskId } }
}
