import { textOf, type Message } from 'taskchart'

/** Whether a message asks for a drawing. */
export function isAboutDrawing(message: Message): boolean {
  return /\b(?:sail|boat|sailboat|ship|yacht|draw|paint)/i.test(textOf(message)) || isChange(message)
}

/** Whether a message asks to change a picture: it refers to one, or says "make it red". */
export function isChange(message: Message): boolean {
  return (
    (message.referenceTaskIds ?? []).length > 0 ||
    /\b(?:make|turn|paint|colou?r|modify|change) (?:it|that|this|the)\b/i.test(textOf(message))
  )
}

/** The message with its boats called pictures: "the red boat" means a picture by its description. */
export function aboutPictures(message: Message): Message {
  return {
    ...message,
    parts: message.parts.map(part =>
      'text' in part ? { ...part, text: part.text.replaceAll(/\b(?:(?:sail)?boat|ship|yacht)\b/gi, 'picture') } : part
    )
  }
}

/** The first of `sailboat_image.png`, `sailboat_image_2.png`, … that is not taken. */
export function freeName(taken: readonly (string | undefined)[]): string {
  const count = new Set(taken).size
  return count === 0 ? 'sailboat_image.png' : `sailboat_image_${count + 1}.png`
}

/** The drawing in words, with its colour if a message has named one. */
export function boatOf({ colour }: { readonly colour?: string | undefined }): string {
  return colour === undefined ? 'sailboat' : `${colour} sailboat`
}
