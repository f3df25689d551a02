// Operations and errors of the public and the workspace API as types, derived from the contract. The
// published declarations have the same types written out (scripts/declarations.ts), so that users of the
// client need neither the contract nor TypeBox.
import type { Static, TSchema } from 'typebox'
import type { apis } from '../contract/apis.ts'
import type { FaultCode, faults } from '../contract/faults.ts'
import type { Operation, OutputOf } from '../contract/operation.ts'
import type { Variant, variants } from '../contract/variants.ts'
import type { Received } from './exact-json.ts'

export type { Variant }

type VariantOperations<V extends Variant> = (typeof variants)[V][number]

/** The document is that of the public API. */
type WorkspaceOperation = Exclude<(typeof apis.workspace.operations)[number], { id: 'description.read' }>

/** In variant B, API keys only read. */
type WorkspaceOperations<V extends Variant> = V extends 'A'
  ? WorkspaceOperation
  : Extract<WorkspaceOperation, { method: 'GET' }>

type InputPart<O extends Operation, P extends 'params' | 'query' | 'body'> = O[P] extends TSchema
  ? Static<O[P]>
  : unknown

/** Input and result of each operation, by API variant. */
export type Operations = {
  [V in Variant]: {
    [O in VariantOperations<V> | WorkspaceOperations<V> as O['id']]: {
      input: InputPart<O, 'params'> & InputPart<O, 'query'> & InputPart<O, 'body'>
      result: Received<OutputOf<O>>
    }
  }
}

/** Method and path of each operation. */
export type Routes = RoutesUnder<VariantOperations<Variant>, (typeof apis.publicA)['prefix']> &
  RoutesUnder<WorkspaceOperation, (typeof apis.workspace)['prefix']>

type RoutesUnder<All extends Operation, Prefix extends string> = {
  [O in All as O['id']]: `${O['method']} ${Prefix}${O['path']}`
}

/** The errors of the API, with the fields of each. */
export type ApiFault = {
  [C in FaultCode]: { error: C } & Omit<Static<(typeof faults)[C]['schema']>, 'error'>
}[FaultCode]
