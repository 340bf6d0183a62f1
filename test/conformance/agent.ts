import { setImmediate } from 'node:timers/promises'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import { authRequired, inputRequired } from '../../runtime/authoring/questions.ts'
import { accepted, artifact, failed, progress, rejected, reply, textOf } from '../../runtime/authoring/words.ts'
import type { NegotiateFunction } from '../../runtime/negotiation/per-message.ts'
import type { WorkFunction } from '../../runtime/work/function-work.ts'
import { deferred } from '../fixtures/runtime/runtime-helpers.ts'

/** An agent that does what its messages say, and a way to let go what it holds. */
export interface Obedient {
  readonly definition: AgentDefinition
  /** Lets the works that `hold` go on. */
  readonly release: () => void
}

/**
 * Answers `hello` and `recall` (what was said before in this context) with a message and refuses `decline`. The rest
 * are tasks: `wait` and `hold` until canceled or released, `ask` and `authorize`, `fail`, `reject`, `count 3`, `draw
 * NAME`, `refine` an earlier drawing, `after` the tasks that it refers to, `details` of its request, `details asked` of
 * the answer's too; any other message comes back as an artifact.
 */
export function obedientAgent(): Obedient {
  let held = deferred()
  const release = () => {
    held.resolve()
    held = deferred()
  }
  const work: WorkFunction = async given => {
    const { message, request, emit, ask, lastAnswer, signal, earlierArtifacts, referenceTasks } = given
    const [word = '', argument = ''] = textOf(message).split(' ')
    switch (word) {
      case 'wait':
      case 'hold': {
        emit(progress('begun'))
        emit(artifact({ artifactId: 'begin', name: 'begin', parts: [{ text: 'begun' }] }))
        const aborted = deferred()
        signal.addEventListener('abort', () => aborted.resolve(), { once: true })
        await Promise.race([aborted.promise, ...(word === 'hold' ? [held.promise] : [])])
        return { artifact: { name: 'end', parts: [{ text: 'released' }] } }
      }
      case 'ask':
        return { artifact: textOf(await ask(inputRequired('And then?'))) }
      case 'authorize': {
        const answer = await ask(authRequired('Please authorize this.'))
        return { artifact: 'data' in answer ? `got ${JSON.stringify(answer.data)}` : `heard ${textOf(answer.message)}` }
      }
      case 'details':
        if (argument === 'asked') await ask(inputRequired('And then?'))
        return {
          artifact: {
            name: 'details',
            parts: [{ data: JSON.parse(JSON.stringify({ opened: request, answer: lastAnswer()?.request })) }]
          }
        }
      case 'fail':
        return failed('It did not work.')
      case 'crash':
        throw new Error('token=s3cret-value')
      case 'reject':
        return rejected('Not today.')
      case 'count':
        for (let n = 1; n <= Number(argument); n += 1) {
          emit(progress(`at ${n}`))
          await setImmediate()
          emit(
            artifact(
              { artifactId: 'count', name: 'count', parts: [{ text: `${n}` }] },
              { append: n > 1, lastChunk: n === Number(argument) }
            )
          )
        }
        return {}
      case 'draw':
        return { artifact: { name: argument, parts: [{ text: `a ${argument}` }] } }
      case 'refine': {
        const meant =
          earlierArtifacts.length === 1
            ? earlierArtifacts[0]?.artifact.name
            : textOf(await ask(inputRequired('Which one?')))
        return { artifact: { name: meant ?? '', parts: [{ text: `a red ${meant ?? ''}` }] } }
      }
      case 'after':
        return {
          artifact: referenceTasks.flatMap(({ artifacts = [] }) => artifacts.map(textOf)).join(', ') || 'nothing'
        }
      default:
        return { artifact: { name: 'echo', parts: message.parts } }
    }
  }
  return { definition: { card: CARD, work, negotiate, cancelGraceMs: 0 }, release }
}

const negotiate: NegotiateFunction = async ({ message, history }) => {
  const [word] = textOf(message).split(' ')
  if (word === 'hello') return reply('Hello to you.')
  if (word === 'recall') return reply((await history()).map(textOf).join(', '))
  return word === 'decline' ? rejected('I do not do that.') : accepted()
}

const CARD = {
  name: 'Obedient',
  description: 'Does what its messages say.',
  defaultInputModes: ['text/plain', 'application/json', 'application/octet-stream'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Says it again.', tags: ['echo'] }]
}
