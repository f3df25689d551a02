// The memory that a read of a connection has filled. The payloads in it share it, and it can be freed as soon
// as all of them were sent on. Otherwise V8 collects it, which took a third of the tunnel client's processor
// time in an upload.

const INPUT_BYTES_MIN = 16 * 1024
/** Smaller ones are not worth it. Their users do not release them, so the memory is not freed. */
const PAYLOAD_BYTES_MIN = 4 * 1024

/** Whole payloads only: the user of a slice is not the owner of the memory. */
const memories = new WeakMap<Buffer, InputMemory>()

export class InputMemory {
  readonly #buffer: ArrayBuffer
  #users = 0

  constructor(buffer: ArrayBuffer) {
    this.#buffer = buffer
  }

  /** Call this for all payloads before any of their users can be done. */
  addUser(payload: Buffer): void {
    this.#users += 1
    if (payload.length >= PAYLOAD_BYTES_MIN) memories.set(payload, this)
  }

  /** A payload is not used any more. */
  release(): void {
    this.#users -= 1
    // Node 20 has no `transfer`.
    if (this.#users === 0) this.#buffer.transfer?.(0)
  }
}

/** Undefined if the input is small, or others use its memory. */
export function inputMemory(input: Buffer, isOnlyUser: boolean): InputMemory | undefined {
  const { buffer, length } = input
  if (length < INPUT_BYTES_MIN || !(isOnlyUser || fillsMemory(input))) return undefined
  return buffer instanceof ArrayBuffer ? new InputMemory(buffer) : undefined
}

/** Node gives what a read leaves of its memory to the next read, of any connection. */
export const fillsMemory = ({ buffer, length }: Buffer): boolean => length === buffer.byteLength

/** The memory of a payload, to be released after its use; undefined for what is not a whole payload. */
export const payloadMemory = (chunk: Buffer): InputMemory | undefined => memories.get(chunk)
