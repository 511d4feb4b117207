// SPDX-License-Identifier: Apache-2.0

//! Programs with libpmemobj: the shared library that is preloaded into them, and the costs of their
//! traces.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::build::Design;
use crate::document::Document;
use crate::error::raise;
use crate::pm_bench::{document, measured};

/// The library, as the bytes of its file.
#[pyfunction]
pub fn pmdk_shim(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, ::pmdk::SHIM)
}

/// The cost of crash consistency in a trace of the library, for a design with an engine for it.
#[pyfunction]
#[pyo3(signature = (design, trace, fence, model=None, build=None, way="waiting"))]
pub fn pmdk_cost(
    py: Python<'_>,
    design: &Design,
    trace: &[u8],
    fence: &str,
    model: Option<&str>,
    build: Option<Py<PyAny>>,
    way: &str,
) -> PyResult<Document> {
    let way = way.parse::<::pmdk::Way>().map_err(raise)?;
    let events = ::pmdk::parse(trace).map_err(raise)?;
    let fence = ::pm_bench::parse_fence(fence).map_err(raise)?;
    let cost = measured(py, &design.inner, model, build, None, |factory, _| {
        let (testbed, _) = ::pm_bench::testbed(factory, 1)?;
        Ok(::pmdk::replay(&testbed, &events, fence, way)?)
    })?;
    document(cost)
}

/// The events of a trace of the library, a line each.
#[pyfunction]
pub fn pmdk_events(trace: &[u8]) -> PyResult<Vec<String>> {
    let events = ::pmdk::parse(trace).map_err(raise)?;
    Ok(events.iter().map(ToString::to_string).collect())
}

/// Finds the instructions of a program's file that flush, fence, or store past the cache. Returns
/// how many of each kind there are, how many are left alone, and the list that the library reads.
#[pyfunction]
pub fn pmdk_instructions<'py>(
    py: Python<'py>,
    file: &[u8],
) -> PyResult<([usize; 5], u64, Bound<'py, PyBytes>)> {
    use ::pmdk::Effect::{Fence, Flush, Locked, OrderedFlush, Stream};
    let found = py.detach(|| ::pmdk::find(file)).map_err(raise)?;
    let counts = [Flush, OrderedFlush, Fence, Locked, Stream].map(|effect| found.count(effect));
    Ok((
        counts,
        found.left_alone,
        PyBytes::new(py, &found.to_bytes()),
    ))
}
