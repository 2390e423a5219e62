#!/usr/bin/env bash
# The programs in bin/ of the bundle: each runs the one of its name for this machine's driver.
self=$(readlink -f "${BASH_SOURCE[0]}")  # it may be a link from elsewhere
here=${self%/bin/*}
# shellcheck source=scripts/gpu_environment.sh
. "$here/gpu_environment.sh"
prepare
exec "$here/${TIDEPOOL_BUILD:?no programs in the bundle}/${self##*/}" "$@"
