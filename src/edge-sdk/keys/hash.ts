// Keys are stored and compared by their SHA-256, as in the control plane.
import { hash } from 'node:crypto'

export const hashKey = (key: string): string => hash('sha256', key, 'hex')
