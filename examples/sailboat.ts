import { accepted, defineAgent, file, progress, reply, setupWork, textOf, type EarlierArtifact, type Message, type WorkInput } from 'taskchart'
import { assign, emit, fromPromise } from 'xstate'
import { colourIn, drawSailboat, type ColourName } from './draw-sailboat.ts'

const NAME = 'sailboat_image.png'

/** A picture that was drawn before: the newest version of its name. */
type Picture = Pick<EarlierArtifact, 'taskId'> & { artifactId: string; name: string }

type Drawing = { colour: ColourName; choices: Picture[]; name: string; unclear: boolean; png: Uint8Array }

/**
 * Draws sailboats: a hybrid agent. What is not about drawing is answered with a message; a picture is a task; a wish to
 * change a picture is a new task, whose artifact keeps the name. If two pictures could be meant, the task asks.
 */
const painter = setupWork({
  types: { context: {} as Drawing },
  actors: { paint: fromPromise<Uint8Array, { colour: ColourName }>(async ({ input }) => drawSailboat(input)) },
  guards: {
    isAmbiguous: ({ context }) => context.choices.length > 1,
    namesOne: ({ context }, message: Message) => chosen(context.choices, message) !== undefined
  },
  actions: {
    /* c8 ignore next -- the guard has found one */
    choose: assign(({ context }, message: Message) => ({ name: chosen(context.choices, message)?.name ?? context.name }))
  }
}).createMachine({
  id: 'sailboat',
  context: ({ input }) => drawingFor(input),
  initial: 'reading',
  states: {
    reading: { always: [{ guard: 'isAmbiguous', target: 'choosing' }, { target: 'painting' }] },
    choosing: {
      tags: 'input-required',
      meta: { prompt: ({ context }) => question(context) },
      on: {
        'message.received': [
          {
            guard: { type: 'namesOne', params: ({ event }) => event.message },
            actions: { type: 'choose', params: ({ event }) => event.message },
            target: 'painting'
          },
          { actions: assign({ unclear: true }) }
        ]
      }
    },
    painting: {
      entry: emit(({ context }) => progress(`Painting a ${context.colour} sailboat.`)),
      invoke: {
        src: 'paint',
        input: ({ context }) => ({ colour: context.colour }),
        onDone: { target: 'painted', actions: assign({ png: ({ event }) => event.output }) },
        onError: 'spoilt'
      }
    },
    painted: { type: 'final' },
    spoilt: { type: 'final', tags: 'failed', meta: { reason: 'The paint ran.' } }
  },
  output: ({ context: { name, colour, png } }) => ({
    artifact: {
      name,
      description: `A generated image of a ${colour} sailboat on the ocean.`,
      parts: [file(png, { filename: name, mediaType: 'image/png' })]
    }
  })
})

export default defineAgent({
  card: {
    name: 'Sailboat',
    description: 'Draws sailboats, and changes their colour.',
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
  negotiate: ({ message }) => (isAboutDrawing(message) ? accepted() : reply('What shall I draw? I am good at sailboats.')),
  work: painter
})

function isAboutDrawing(message: Message): boolean {
  return /\b(?:sail|boat|sailboat|ship|yacht|draw|paint)/i.test(textOf(message)) || isChange(message)
}

/** A wish to change a picture: it refers to one, or says "make it red". */
function isChange(message: Message): boolean {
  return message.referenceTaskIds !== undefined || /\b(?:make|turn|paint|colou?r) (?:it|that|this|the)\b/i.test(textOf(message))
}

function drawingFor({ message, earlierArtifacts }: WorkInput): Drawing {
  const colour = colourIn(textOf(message)) ?? 'white'
  const pictures = newestOfEachName(earlierArtifacts)
  const name = pictures.length === 0 ? NAME : NAME.replace('.', `_${pictures.length + 1}.`)
  const drawing = { colour, choices: [], name, unclear: false, png: new Uint8Array() }
  if (!isChange(message)) return drawing
  return { ...drawing, choices: pictures, name: pictures[0]?.name ?? NAME }
}

function newestOfEachName(artifacts: readonly EarlierArtifact[]): Picture[] {
  const newest = new Map<string, Picture>()
  for (const { taskId, artifact: { artifactId, name = artifactId } } of artifacts) {
    if (!newest.has(name)) newest.set(name, { taskId, artifactId, name })
  }
  return [...newest.values()]
}

function question({ choices, unclear }: Drawing): string {
  const names = choices.map(({ name }) => name).join(' or ')
  return unclear ? `I drew no picture of that name. Say ${names}.` : `Which picture do you mean: ${names}?`
}

/** The picture that an answer names: in a part's metadata, or by its file name. */
function chosen(choices: readonly Picture[], message: Message): Picture | undefined {
  const named = message.parts.map(({ metadata }) => metadata?.artifactId)
  return choices.find(({ artifactId }) => named.includes(artifactId)) ?? choices.toSorted((a, b) => b.name.length - a.name.length).find(({ name }) => textOf(message).includes(name))
}
