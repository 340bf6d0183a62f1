import { textOf } from '../../../runtime/authoring/words.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import { refined } from '../../../runtime/work/refining.ts'
import { row, type Row } from '../row.ts'

/** Draws what a message names (`draw dog.png`), and refines what was drawn before. */
const work: WorkFunction = async work => {
  const [word, name = ''] = textOf(work.message).split(' ')
  if (word === 'draw')
    return {
      artifact: {
        name,
        description: `A picture of ${name === 'dog.png' ? 'an animal' : 'a boat'}.`,
        parts: [{ text: name }]
      }
    }
  return { artifact: refined(await work.artifactToRefine({ what: 'picture' }), 'red') }
}

/** What follows up on tasks of a context. */
export const refining: readonly Row[] = [
  row(
    175,
    'D',
    '3.4.3',
    'A question which artifact is meant is answered by its place in the list, its name without the extension, or a word of its description',
    async (t, { serve }) => {
      const client = await (await serve(t, {}, { work })).open()
      const { contextId = '' } = await client.task('draw dog.png')
      t.match(
        await client.task('make it red', { contextId }),
        { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ name: 'dog.png' }] },
        'the only one of the context needs no question'
      )
      await client.task('draw sail.png', { contextId })
      for (const [answer, pick] of [
        ['the second one', 1],
        ['1', 0],
        ['the dog', 'dog.png'],
        ['the boat', 'sail.png']
      ] as const) {
        const asked = await client.task('make it red', { contextId })
        t.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
        const listed =
          /Which picture do you mean: (\S+) or (\S+)\?/.exec(JSON.stringify(asked.status.message))?.slice(1) ?? []
        const name = typeof pick === 'number' ? listed[pick] : pick
        t.match(
          await client.task(answer, { taskId: asked.id }),
          { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ name }] },
          answer
        )
      }
    }
  )
]
