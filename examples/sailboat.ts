import {
  accepted,
  artifactChoices,
  defineAgent,
  file,
  fromPromise,
  progress,
  reply,
  setupWork,
  textOf,
  typed,
  whichArtifact,
  type ArtifactChoice,
  type Part
} from 'taskchart'
import { assign, emit } from 'xstate'
import { colourIn, drawSailboat, type ColourName } from './draw-sailboat.ts'
import { aboutPictures, boatOf, freeName, isAboutDrawing, isChange } from './wishes.ts'

/**
 * The picture to draw. `choices` are the pictures that may be meant. The new one gets the name and the colour of the
 * one that is left.
 */
type Drawing = {
  colour?: ColourName | undefined
  isChange: boolean
  choices: ArtifactChoice[]
  name: string
  isAgain: boolean
  parts: Part[]
}
/**
 * Draws sailboats: a hybrid agent. It answers with a message unless the client asks for a drawing. Each picture is a
 * task. A change to a picture is a new task, whose artifact has the same name. If two pictures could be meant, or none
 * is there, the task asks.
 */
const painter = setupWork({
  types: { context: typed<Drawing>() },
  actors: {
    paint: fromPromise<Part, Drawing>(async ({ input: { colour, name } }) =>
      file(drawSailboat({ colour }), { filename: name, mediaType: 'image/png' })
    )
  },
  guards: {
    isUnclear: ({ context: { isChange, choices } }) => isChange && choices.length !== 1,
    isMissing: ({ context }) => context.choices.length === 0
  },
  actions: {
    keepBoat: assign(
      ({
        context: {
          choices: [old],
          name,
          colour
        }
      }) => ({ name: old?.name ?? name, colour: colour ?? colourIn(old?.description ?? '') })
    ),
    takeWish: assign(({ context: { colour }, event }) => ({ colour: colourIn(textOf(event.message)) ?? colour })),
    takeChoice: assign(({ context: { choices }, event }) => ({
      isAgain: true,
      choices: artifactChoices(choices, event.message)
    }))
  }
}).createMachine({
  id: 'sailboat',
  initial: 'choosing',
  context: ({ input: { message, earlierArtifacts } }) => ({
    colour: colourIn(textOf(message)),
    isChange: isChange(message),
    choices: isChange(message) ? artifactChoices({ message: aboutPictures(message), earlierArtifacts }) : [],
    name: freeName(earlierArtifacts.map(({ artifact }) => artifact.name)),
    isAgain: false,
    parts: []
  }),
  states: {
    choosing: {
      always: [
        { guard: 'isUnclear', target: 'asking' },
        { target: 'painting', actions: 'keepBoat' }
      ]
    },
    asking: {
      tags: 'input-required',
      meta: { prompt: ({ context: { choices, isAgain } }) => whichArtifact(choices, { what: 'picture', isAgain }) },
      on: {
        'message.received': [
          { guard: 'isMissing', target: 'painting', actions: 'takeWish' },
          { target: 'choosing', actions: 'takeChoice' }
        ]
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
  messages: { 'one.png': 'one.png', 'that one': 'that one' },
  results: {
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
