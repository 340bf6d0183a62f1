import { accepted, artifactToRefine, defineAgent, file, progress, refined, reply, textOf, type Message } from 'taskchart'
import { colourIn, drawSailboat } from './draw-sailboat.ts'

const NAME = 'sailboat_image.png'

/**
 * Draws sailboats: a hybrid agent. What is not about drawing is answered with a message; a picture is a task; a wish to
 * change a picture is a new task, whose artifact keeps the name. If two pictures could be meant, the task asks.
 */
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
  work: async work => {
    const { message, earlierArtifacts, emit } = work
    const original = isChange(message) ? await artifactToRefine(work, { what: 'picture', optional: true }) : undefined
    const colour = colourIn(textOf(message)) ?? 'white'
    emit(progress(`Painting a ${colour} sailboat.`))
    const name = original?.artifact.name ?? freeName(earlierArtifacts.map(({ artifact }) => artifact.name))
    const picture = {
      description: `A generated image of a ${colour} sailboat on the ocean.`,
      parts: [file(drawSailboat({ colour }), { filename: name, mediaType: 'image/png' })]
    }
    return { artifact: original ? refined(original, picture) : { name, ...picture } }
  }
})

function isAboutDrawing(message: Message): boolean {
  return /\b(?:sail|boat|sailboat|ship|yacht|draw|paint)/i.test(textOf(message)) || isChange(message)
}

/** A wish to change a picture: it refers to one, or says "make it red". */
function isChange(message: Message): boolean {
  return message.referenceTaskIds !== undefined || /\b(?:make|turn|paint|colou?r|modify|change) (?:it|that|this|the)\b/i.test(textOf(message))
}

/** A name that no other picture has. */
function freeName(taken: readonly (string | undefined)[]): string {
  const count = new Set(taken).size
  return count === 0 ? NAME : NAME.replace('.', `_${count + 1}.`)
}
