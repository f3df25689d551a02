import { useMediaQuery } from '@mantine/hooks'

/** True below the width at which the navigation collapses and tables become cards. */
export const useIsPhone = (): boolean =>
  useMediaQuery('(max-width: 47.99em)', undefined, { getInitialValueInEffect: false }) ?? false
