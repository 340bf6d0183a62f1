import type { AnyActorRef } from 'xstate'
import type { Message } from '../../machines/protocol/parts.ts'
import { authRequired, inputRequired, type Question } from '../../runtime/authoring/questions.ts'
import { artifact, progress } from '../../runtime/authoring/words.ts'
import type { StandardSchema } from '../../runtime/ports/standard-schema.ts'
import { runOf } from '../../runtime/work/function-work.ts'
import type { RemoteAsking } from './remote/remote-events.ts'
import { digestOf } from './remote/remote-record.ts'
import type { Listener } from './remote/remote-task.ts'

/** Which events of the other agent's task are forwarded. */
export interface ForwardOptions {
  /** Forwards status messages as progress. Default true. */
  readonly progress?: boolean
  /** Forwards artifacts, chunk by chunk, with new ids. Default true. */
  readonly artifacts?: boolean
}

/** Forwards events and questions of another agent to the work of a function or generator. `key` identifies the delegation in its task. */
export function forwardEvents(self: AnyActorRef, key: string, title: string, options: ForwardOptions): Listener {
  const { progress: tells = true, artifacts: hands = true } = options
  const work = self._parent
  const run = work && runOf(work)
  let asked = new AbortController()
  const ask = (event: RemoteAsking, number: number) => {
    asked = new AbortController()
    run?.relay(questionOf(event, title), { key: `${key}/question/${number}`, signal: asked.signal }).then(
      answer =>
        answer !== undefined &&
        self.send({ type: 'answer', message: messageIn(answer as Message | { message: Message }) }),
      // The work has ended.
      () => {}
    )
  }
  return {
    hear: (event, question) => {
      if (event.type === 'remote.artifact') {
        const {
          artifact: { artifactId, ...content },
          append,
          lastChunk
        } = event
        if (hands)
          run?.pass(artifact({ ...content, artifactId: digestOf('artifact', key, artifactId) }, { append, lastChunk }))
        return
      }
      // The agent continues without an answer, or asks a new question.
      asked.abort()
      if (event.type !== 'remote.status') return ask(event, question)
      if (tells && event.message) run?.pass(progress(event.message))
    },
    hearAgain: ask,
    over: () => asked.abort(),
    // Work that restarts after a crash resumes its delegations.
    goesOn: () => work?._parent?.getSnapshot().status === 'active'
  }
}

function questionOf({ type, message, refusal }: RemoteAsking, title: string): Question {
  const asked = message ?? { parts: [{ text: `${title} needs an answer to go on.` }] }
  const words = refusal === undefined ? asked : { ...asked, parts: [{ text: refusal }, ...asked.parts] }
  return type === 'remote.input-required' ? inputRequired(words) : authRequired(words, { schema: notHere(title) })
}

/** A schema that refuses authorizations: no message can pass one on to the agent that waits for it. */
function notHere(title: string): StandardSchema<never> {
  const message = `cannot be passed on: authorize it with ${title} itself`
  return { '~standard': { version: 1, vendor: 'taskchart', validate: () => ({ issues: [{ message }] }) } }
}

/** The client's message: the answer to a question, or in an answer to a request for authorization. */
function messageIn(answer: Message | { readonly message: Message }): Message {
  return 'message' in answer ? answer.message : answer
}
