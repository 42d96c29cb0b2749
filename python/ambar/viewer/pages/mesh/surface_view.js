// Renders a surface with vtk.js, which Panel brings along: the global `vtk`.

export function render({ model, el }) {
  const { vtkAxesActor, vtkActor, vtkMapper } = vtk.Rendering.Core;
  const { vtkDataArray, vtkLookupTable } = vtk.Common.Core;
  const container = document.createElement("div");
  Object.assign(container.style, { position: "absolute", inset: 0 });
  const label = document.createElement("div");
  label.className = "picked";
  Object.assign(label.style, { position: "absolute", left: "12px", top: "8px", font: "12px sans-serif" });
  el.append(container, label);
  el.style.position = "relative";

  const view = vtk.Rendering.Misc.vtkGenericRenderWindow.newInstance();
  view.setContainer(container);
  const renderer = view.getRenderer();
  const draw = () => view.getRenderWindow().render();
  const polydata = vtk.Common.DataModel.vtkPolyData.newInstance();
  const table = vtkLookupTable.newInstance();
  const mapper = vtkMapper.newInstance({ interpolateScalarsBeforeMapping: true });
  mapper.setInputData(polydata);
  mapper.setLookupTable(table);
  mapper.setUseLookupTableScalarRange(true);
  const actor = vtkActor.newInstance();
  actor.setMapper(mapper);
  renderer.addActor(actor);

  const marker = vtk.Interaction.Widgets.vtkOrientationMarkerWidget.newInstance({
    actor: vtkAxesActor.newInstance(),
    interactor: view.getInteractor(),
    viewportSize: 0.12,
    minPixelSize: 60,
    maxPixelSize: 110,
  });
  marker.setEnabled(true);

  const part = (mapping, key) => (mapping instanceof Map ? mapping.get(key) : mapping[key]);

  function showGeometry() {
    const geometry = model.geometry;
    // Copies: arrays of Bokeh are of a subclass, whose parts are wrong.
    polydata.getPoints().setData(new Float32Array(part(geometry, "points")), 3);
    polydata.getPolys().setData(new Uint32Array(part(geometry, "polys")));
    polydata.getLines().setData(new Uint32Array(part(geometry, "lines")));
    polydata.getVerts().setData(new Uint32Array(part(geometry, "verts")));
    polydata.getPoints().modified();
    polydata.modified();
  }

  function showValues() {
    const values = model.values;
    for (const data of [polydata.getPointData(), polydata.getCellData()]) data.removeAllArrays();
    mapper.setScalarVisibility(values.length > 0);
    if (values.length > 0) {
      const data = model.on_points ? polydata.getPointData() : polydata.getCellData();
      data.setScalars(vtkDataArray.newInstance({ name: "values", values }));
      model.on_points ? mapper.setScalarModeToUsePointData() : mapper.setScalarModeToUseCellData();
    }
    polydata.modified();
  }

  function showLook() {
    const look = model.look;
    const property = actor.getProperty();
    property.setRepresentation({ points: 0, wireframe: 1 }[part(look, "style")] ?? 2);
    property.setEdgeVisibility(part(look, "edges"));
    property.setEdgeColor(0.25, 0.25, 0.25);
    property.setPointSize(4);
    property.setColor(0.6, 0.7, 0.78);
    property.setAmbient(0.45);
    property.setDiffuse(0.6);
    renderer.setBackground(...part(look, "background"));
    label.style.color = part(look, "text");
    const colors = part(look, "colors");
    table.setNumberOfColors(colors.length / 4);
    table.setTable(vtkDataArray.newInstance({ numberOfComponents: 4, values: colors }));
    table.setNanColor(0.6, 0.6, 0.6, 1);
    table.setMappingRange(...part(look, "range"));
    table.modified();
    mapper.modified();
  }

  function showCamera() {
    const { direction, up, bounds } = Object.fromEntries(
      ["direction", "up", "bounds"].map((key) => [key, part(model.camera, key)]),
    );
    const camera = renderer.getActiveCamera();
    camera.setFocalPoint(0, 0, 0);
    camera.setPosition(...direction);
    camera.setViewUp(...up);
    renderer.resetCamera(bounds);
    marker.updateMarkerOrientation();
  }

  // Properties change one after the other; they are shown together.
  const shows = { geometry: showGeometry, values: showValues, look: showLook, camera: showCamera };
  let pending = new Set(Object.keys(shows));
  function update() {
    if (pending.has("geometry") || pending.has("values")) label.textContent = "";
    for (const [name, show] of Object.entries(shows)) if (pending.has(name)) show();
    pending = new Set();
    renderer.resetCameraClippingRange();
    draw();
  }
  for (const name of Object.keys(shows)) {
    model.on(name, () => {
      if (pending.size === 0) setTimeout(update, 0);
      pending.add(name);
    });
  }
  update();

  // A click shows the value and the position of the nearest point or of the cell there.
  let down = [0, 0];
  const press = (event) => (down = [event.clientX, event.clientY]);
  container.addEventListener("pointerdown", press, true);
  container.addEventListener("pointerup", (event) => {
    if (Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 3) return;
    const box = container.getBoundingClientRect();
    const ratio = window.devicePixelRatio;
    const place = [(event.clientX - box.x) * ratio, (box.bottom - event.clientY) * ratio];
    const window_ = view.getApiSpecificRenderWindow();
    const [near, far] = [0, 1].map((depth) => window_.displayToWorld(...place, depth, renderer));
    const points = polydata.getPoints().getData();
    const hit = firstHit(near, far, points, polydata.getPolys().getData());
    label.textContent = hit === null ? "" : describe(hit, points);
  }, true);

  function describe(hit, points) {
    const point = (id) => points.subarray(3 * id, 3 * id + 3);
    const distance = (id) => Math.hypot(...minus(point(id), hit.position));
    const nearest = hit.corners.reduce((a, b) => (distance(a) <= distance(b) ? a : b));
    const shown = model.on_points ? point(nearest) : hit.position;
    // Digits that are significant for the size of the mesh, however far it is from 0.
    const bounds = part(model.camera, "bounds");
    const size = Math.max(...[1, 3, 5].map((n) => bounds[n] - bounds[n - 1])) || 1;
    const digits = Math.min(Math.max(5 - Math.ceil(Math.log10(size)), 0), 100);
    const origin = part(model.geometry, "origin");
    const coordinates = Array.from(shown, (x, axis) => Number((origin[axis] + x).toFixed(digits)));
    const place = `(${coordinates.join(", ")})`;
    if (model.values.length === 0) return place;
    // Cell data begin with the cells of points and lines.
    const first = polydata.getVerts().getNumberOfCells() + polydata.getLines().getNumberOfCells();
    const value = model.values[model.on_points ? nearest : first + hit.cell];
    const text = new Function("tick", part(model.look, "true_value"))(value);
    return `${part(model.look, "name")}: ${text} at ${place}`;
  }

  new ResizeObserver(() => { view.resize(); draw(); }).observe(container);
}

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
];

// Returns the first polygon on a ray: its number, its corners, and the position; or null.
function firstHit(near, far, points, polys) {
  const ray = minus(far, near);
  const point = (id) => [points[3 * id], points[3 * id + 1], points[3 * id + 2]];
  let found = null;
  let first = Infinity;
  for (let at = 0, cell = 0; at < polys.length; at += polys[at] + 1, cell++) {
    const origin = point(polys[at + 1]);
    for (let corner = at + 2; corner < at + polys[at]; corner++) {
      // The algorithm of Moeller and Trumbore.
      const [a, b] = [minus(point(polys[corner]), origin), minus(point(polys[corner + 1]), origin)];
      const p = cross(ray, b);
      const determinant = dot(a, p);
      if (determinant === 0) continue;
      const start = minus(near, origin);
      const u = dot(start, p) / determinant;
      const q = cross(start, a);
      const v = dot(ray, q) / determinant;
      const t = dot(b, q) / determinant;
      if (u < 0 || v < 0 || u + v > 1 || t < 0 || t >= first) continue;
      first = t;
      const corners = Array.from(polys.subarray(at + 1, at + 1 + polys[at]));
      found = { cell, corners, position: near.map((x, axis) => x + t * ray[axis]) };
    }
  }
  return found;
}
