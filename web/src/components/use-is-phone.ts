import { useMediaQuery } from '@mantine/hooks'

/** Below it the navigation folds away, and tables become cards. */
export const useIsPhone = (): boolean =>
  useMediaQuery('(max-width: 47.99em)', undefined, { getInitialValueInEffect: false }) ?? false
