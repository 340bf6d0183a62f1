import {
  accepted,
  artifactToRefine,
  defineAgent,
  file,
  fromPromise,
  progress,
  reply,
  setupWork,
  textOf,
  typed,
  type Message,
  type Part
} from 'taskchart'
import { assign, emit } from 'xstate'
import { colourIn, drawSailboat, type ColourName } from './draw-sailboat.ts'
import { aboutPictures, boatOf, freeName, isAboutDrawing, isChange } from './wishes.ts'

/**
 * The picture to draw. `change` is the message, if it asks for a change: then the new picture gets the name of the
 * earlier one, and its colour if the message names none.
 */
type Drawing = {
  colour?: ColourName | undefined
  change?: Message | undefined
  name: string
  parts: Part[]
}
/**
 * Draws sailboats: a hybrid agent. It answers with a message unless the client asks for a drawing. Each picture is a
 * task. A change to a picture is a new task, whose artifact has the same name. If two pictures could be meant, the task
 * asks. If none is there, it draws one.
 */
const painter = setupWork({
  types: { context: typed<Drawing>() },
  actors: {
    artifactToRefine: artifactToRefine({ what: 'picture', optional: true }),
    paint: fromPromise<Part, Drawing>(async ({ input: { colour, name } }) =>
      file(drawSailboat({ colour }), { filename: name, mediaType: 'image/png' })
    )
  },
  guards: { isChange: ({ context }) => context.change !== undefined }
}).createMachine({
  id: 'sailboat',
  initial: 'choosing',
  context: ({ input: { message, earlierArtifacts } }) => ({
    colour: colourIn(textOf(message)),
    change: isChange(message) ? aboutPictures(message) : undefined,
    name: freeName(earlierArtifacts.map(({ artifact }) => artifact.name)),
    parts: []
  }),
  states: {
    choosing: { always: [{ guard: 'isChange', target: 'finding' }, { target: 'painting' }] },
    finding: {
      invoke: {
        src: 'artifactToRefine',
        input: ({ context }) => ({ message: context.change }),
        onDone: {
          target: 'painting',
          actions: assign(({ context: { name, colour }, event: { output } }) => ({
            name: output?.artifact.name ?? name,
            colour: colour ?? colourIn(output?.artifact.description ?? '')
          }))
        }
      }
    },
    painting: {
      entry: emit(({ context }) => progress(`Painting a ${boatOf(context)}.`)),
      invoke: {
        src: 'paint',
        input: ({ context }) => context,
        onDone: { target: 'painted', actions: assign({ parts: ({ event }) => [event.output] }) },
        onError: 'spoilt'
      }
    },
    painted: { type: 'final' },
    spoilt: { type: 'final', tags: 'failed', meta: { reason: 'The paint ran.' } }
  },
  output: ({ context }) => ({
    artifact: {
      name: context.name,
      description: `A generated image of a ${boatOf(context)} on the ocean.`,
      parts: context.parts
    }
  })
})

/** The cases of its tests: `npx taskchart test examples/sailboat.ts`. */
export const cases = {
  opening: {
    'a sailboat': 'a sailboat',
    'make it bigger': 'make it bigger',
    'make it red': {
      words: 'make it red',
      earlier: ['one.png', 'two.png'].map(name => ({ name, parts: [{ text: '…' }] }))
    }
  },
  results: {
    artifactToRefine: {
      'a green boat': {
        taskId: 't1',
        artifact: { artifactId: 'a1', name: 'one.png', description: 'a green sailboat', parts: [{ text: '…' }] }
      },
      nothing: undefined
    },
    paint: { 'a picture': { raw: 'iVBORw==', mediaType: 'image/png' }, 'a spill': new Error('The pot fell over.') }
  }
}

export default defineAgent({
  card: {
    name: 'Sailboat',
    description: 'Draws sailboats, and changes their colour.',
    defaultInputModes: ['text/plain', 'image/png'],
    defaultOutputModes: ['text/plain', 'image/png'],
    skills: [
      {
        id: 'draw',
        name: 'Draw a sailboat',
        description: 'Draws a sailboat on the ocean; makes it another colour.',
        tags: ['image'],
        examples: ['a sailboat', 'make it red'],
        outputModes: ['image/png']
      }
    ]
  },
  negotiate: ({ message }) =>
    isAboutDrawing(message) ? accepted() : reply('What shall I draw? I am good at sailboats.'),
  work: painter
})
